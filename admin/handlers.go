package admin

import (
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"log"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed page
var files embed.FS

// discarded takes what net/http says of clients that hang up.
var discarded = log.New(io.Discard, "", 0)

// kinds are the content types of the page's files: not the system's, which may know none.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
}

// handler puts the page together.
func (s *Server) handler(scrape http.Handler) http.Handler {
	mux := http.NewServeMux()
	for name, body := range embedded() {
		mux.Handle("GET /"+name, file(name, body))
	}
	index, _ := fs.ReadFile(files, "page/index.html") // it is embedded
	mux.Handle("GET /{$}", file("index.html", index))
	mux.HandleFunc("GET /api/state", s.serveState)
	mux.HandleFunc("GET /api/stream", s.serveStream)
	mux.Handle("GET /metrics", scrape)
	var scripts []string
	for _, p := range s.cfg.Panels {
		if p.Script != nil {
			mux.Handle("GET /panel/"+p.Name+".js", file(p.Name+".js", p.Script))
			scripts = append(scripts, `"`+p.Name+`"`)
		}
		if p.Act != nil {
			mux.Handle("POST /panel/"+p.Name, act(p))
		}
	}
	mux.Handle("GET /panels.js", file("panels.js", []byte("export default ["+strings.Join(scripts, ", ")+"];\n")))
	return newGuard(s.cfg.Token).wrap(mux)
}

// embedded gives the page's files by name.
func embedded() map[string][]byte {
	list := make(map[string][]byte)
	entries, _ := files.ReadDir("page") // it is embedded
	for _, e := range entries {
		if _, known := kinds[path.Ext(e.Name())]; known {
			list[e.Name()], _ = files.ReadFile("page/" + e.Name())
		}
	}
	return list
}

// file serves bytes that never change while the program runs.
func file(name string, body []byte) http.Handler {
	sum := fnv.New64a()
	_, _ = sum.Write(body) // a hash takes everything
	tag := `"` + hex.EncodeToString(sum.Sum(nil)) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", kinds[path.Ext(name)])
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(body) // who has hung up is not told
	})
}

func (s *Server) serveState(w http.ResponseWriter, _ *http.Request) {
	text, _, _ := s.state.now()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(append(text[:len(text):len(text)], '\n'))
}

// serveStream sends a snapshot whenever there is a new one. A viewer that does not take one in time is let go of.
func (s *Server) serveStream(w http.ResponseWriter, r *http.Request) {
	select {
	case s.viewers <- struct{}{}:
		defer func() { <-s.viewers }()
	default:
		http.Error(w, fmt.Sprintf("%d viewers are here already: close one, or ask /api/state now and then", maxViewers),
			http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // that of the request: when it is over, the server takes the viewer for gone
	last := uint64(0)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-timer.C:
		}
		text, number, left := s.state.now()
		if number != last {
			last = number
			_ = control.SetWriteDeadline(time.Now().Add(writeLimit)) // where there is none, the system's is
			if _, err := fmt.Fprintf(w, "id: %d\ndata: %s\n\n", number, text); err != nil {
				return
			}
			if err := control.Flush(); err != nil {
				return
			}
		}
		timer.Reset(left + time.Millisecond)
	}
}

// errTooLong refuses a command.
var errTooLong = errors.New("the command is too long to be one")

// act takes a command for a panel.
func act(p Panel) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCommand))
		if err != nil {
			err = errTooLong
		} else {
			err = p.Act(r.Context(), strings.TrimSpace(string(body)))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
}
