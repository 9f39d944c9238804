package admin

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

const (
	cookieName = "railyard"
	// policy lets the page use what comes from here, and nothing else; nobody may put it into a frame.
	policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	// Wrong tokens: so many at once, and one more each second.
	maxGuesses = 10
	guessEvery = time.Second
)

// guard is who may look.
type guard struct {
	token []byte // hashed; nil: none
	pass  string // the cookie of who has shown it
	cross *http.CrossOriginProtection

	mu sync.Mutex
	// Owner: mu.
	guesses int
	since   time.Time
}

func newGuard(token string) *guard {
	g := &guard{cross: http.NewCrossOriginProtection()}
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		g.token = sum[:]
		mac := hmac.New(sha256.New, []byte(token))
		_, _ = mac.Write([]byte("railyard admin page")) // a hash takes everything
		g.pass = hex.EncodeToString(mac.Sum(nil))
	}
	return g
}

// wrap puts the guard before a handler.
func (g *guard) wrap(next http.Handler) http.Handler {
	next = g.cross.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		switch {
		case g.token == nil && !local(r.Host):
			http.Error(w, "this page answers only to names of loopback: ask for http://127.0.0.1 or http://localhost with its port",
				http.StatusMisdirectedRequest)
		case g.token == nil, g.known(r):
			next.ServeHTTP(w, r)
		case r.Method == http.MethodPost && r.URL.Path == "/login":
			g.cross.Handler(http.HandlerFunc(g.login)).ServeHTTP(w, r)
		case r.Method == http.MethodGet && (r.URL.Path == "/page.css" || r.URL.Path == "/icon.svg"):
			next.ServeHTTP(w, r) // nothing of the node is in them
		default:
			g.ask(w, r)
		}
	})
}

// local tells whether a request was for this host by a name that no other site can have.
func local(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	if name == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil && ip.IsLoopback()
}

// known tells whether the request shows the token, or the cookie that it earned. A wrong bearer counts as a guess.
func (g *guard) known(r *http.Request) bool {
	if c, err := r.Cookie(cookieName); err == nil && subtle.ConstantTimeCompare([]byte(c.Value), []byte(g.pass)) == 1 {
		return true
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && g.mayGuess() && g.right(token)
}

func (g *guard) right(token string) bool {
	sum := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(sum[:], g.token) == 1 {
		return true
	}
	g.mu.Lock()
	g.guesses++
	g.mu.Unlock()
	return false
}

// mayGuess bounds wrong tokens; right ones do not count.
func (g *guard) mayGuess() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if n := int(now.Sub(g.since) / guessEvery); n > 0 {
		g.guesses, g.since = max(0, g.guesses-n), now
	}
	return g.guesses < maxGuesses
}

// login takes the token from the page's form.
func (g *guard) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxCommand)
	switch {
	case !g.mayGuess():
		http.Error(w, "too many wrong tokens: wait a few seconds", http.StatusTooManyRequests)
	case !g.right(r.PostFormValue("token")):
		g.ask(w, r)
	default:
		http.SetCookie(w, &http.Cookie{Name: cookieName, Value: g.pass, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}
}

// ask says that a token is wanted, to people with a form.
func (g *guard) ask(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="railyard"`)
	w.Header().Set("Cache-Control", "no-store")
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		http.Error(w, "a token is wanted: Authorization: Bearer TOKEN", http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusUnauthorized)
	wrong := ""
	if r.Method == http.MethodPost {
		wrong = `<p role="alert">This is not the token.</p>`
	}
	_, _ = w.Write([]byte(`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Railyard</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="/icon.svg"><link rel="stylesheet" href="/page.css"></head>
<body class="login"><main><h1>Railyard</h1><form method="post" action="/login">` + wrong + `
<label>Token of this node <input type="password" name="token" autocomplete="current-password" required autofocus></label>
<button>Look</button></form></main></body></html>`))
}
