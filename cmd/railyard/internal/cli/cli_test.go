package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// beTool makes this test binary the tool itself: the second process of the commands under test is started as
// this program again.
const beTool = "RAILYARD_TEST_IS_TOOL"

func TestMain(m *testing.M) {
	// A fuzz target's workers are this program too, and stay tests.
	test := len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "-test.")
	if os.Getenv(beTool) != "" && !test {
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	if err := os.Setenv(beTool, "1"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// protoactor counts dead letters in a goroutine that ends by itself, a second later.
	const throttle = "github.com/asynkron/protoactor-go/actor."
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(throttle+"NewDeadLetter.NewThrottle.func4.1"),
		goleak.IgnoreAnyFunction(throttle+"NewThrottle.func1.1"))
}

// tool runs a command line in this process.
func tool(ctx context.Context, args ...string) (code int, out, errOut string) {
	var o, e bytes.Buffer
	code = run(ctx, args, streams{strings.NewReader(""), &o, &e})
	return code, o.String(), e.String()
}

func writeScript(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestWrongUsageIsOneLineAndCode2(t *testing.T) {
	bad := writeScript(t, "wait 1s\ncut 7 reset\n")
	huge := writeScript(t, strings.Repeat("# nothing\n", maxScript/10+1))
	for line, word := range map[string]string{
		"help fly":                               `no help about "fly"`,
		"help demo fly":                          `no help about "demo fly"`,
		"__complete":                             "requires at least",
		"demo \x1bfly":                           "there is no",
		"fly":                                    `no "fly"; there are completion, demo, info, man, perf, top, version`,
		"info --fast":                            "unknown flag",
		"info eth0":                              `"eth0" is one`,
		"perf fly":                               `no test "fly"; there are put-bw, put-lat`,
		"perf put-bw get-bw":                     `"get-bw" is another`,
		"perf put-bw --rails 0":                  "0 rails",
		"perf put-bw --rails many":               `"many"`,
		"perf put-bw --transport verbs":          "not built yet",
		"perf put-bw --transport mixed":          "not built yet",
		"perf put-bw --transport carrier":        `"carrier"`,
		"perf put-bw --size 4XiB":                "4XiB",
		"perf put-bw --size 2GiB":                "size 2147483648",
		"perf msg-bw --size 17MiB":               "size 17825792",
		"perf put-bw --time 0s":                  "time 0s",
		"perf put-bw --time soon":                `"soon"`,
		"perf put-bw --window 0":                 "window 0",
		"perf put-bw --senders 65":               "65 senders",
		"perf put-bw --rail 127.0.0.1":           "say where it serves",
		"perf put-bw --to 10.0.0.1:1 --rails 2":  "--rails makes loopback rails",
		"perf put-bw --to x --rail nowhere":      `"nowhere"`,
		"perf serve now":                         `"now" is one`,
		"perf serve --rail 0.0.0.0:7400":         "0.0.0.0",
		"perf serve --timeline x":                "name them with --rail",
		"--fast":                                 "unknown flag: --fast",
		"demo fly":                               `no "fly"; there are failover`,
		"demo failover now":                      `"now" is one`,
		"demo failover --rails":                  "flag needs an argument",
		"demo failover --rails x":                `"x"`,
		"demo failover --rails 1":                "--rails 1: a failover needs 2",
		"demo failover --rails 17":               "--rails 17",
		"demo failover --pairs 0":                "--pairs 0",
		"demo failover --pairs 65":               "--pairs 65",
		"demo failover --seed -1":                `"-1"`,
		"demo failover --sabotage axe":           `"axe"; there are drop, double, reorder, late-write`,
		"demo failover --script /does/not/exist": "/does/not/exist",
		"demo failover --script " + bad:          "line 2, at \"7\"",
		"demo failover --script " + huge:         "longer than",
		"demo failover --script " + os.TempDir(): "cannot be read",
		"demo failover --json=maybe":             `"maybe"`,
		"top":                                    "one address",
		"top a b":                                "one address",
		"top nowhere --once":                     `"http://nowhere" is none`,
		"top 127.0.0.1:1":                        "needs a terminal",
		"top 127.0.0.1:1 --json":                 "goes with --once",
		"top 127.0.0.1:1 --token-file nowhere":   "nowhere",
		"completion tcsh":                        `no completion for "tcsh"`,
		"completion":                             "name a shell",
		"version now":                            `"now" is one`,
		"man page":                               `"page" is one`,
		"demo failover --page --json":            "--page is for cutting by hand",
		"demo failover --page --script default":  "--page is for cutting by hand",
		"demo failover --listen 0.0.0.0:0":       "needs a token",
		"demo failover --listen here":            `it is "here"`,
	} {
		code, out, errOut := tool(t.Context(), strings.Fields(line)...)
		assert.Equal(t, codeUsage, code, line)
		assert.Empty(t, out, line)
		assert.Equal(t, 1, strings.Count(errOut, "\n"), "%s: %q", line, errOut)
		assert.Contains(t, errOut, word, line)
		assert.True(t, strings.HasPrefix(errOut, "railyard: "), errOut)
	}
}

func TestHelp(t *testing.T) {
	for _, line := range []string{"", "--help", "demo", "demo --help", "demo failover --help", "help demo", "help demo failover", "help",
		"info --help", "perf", "perf --help", "perf serve --help", "top --help", "version --help", "man --help", "completion --help"} {
		code, out, errOut := tool(t.Context(), strings.Fields(line)...)
		assert.Equal(t, codeWell, code, line)
		assert.Contains(t, out, "Usage:", line)
		assert.Empty(t, errOut, line)
		assert.NotContains(t, out, "second-process", "what is hidden stays so")
	}
}

func TestTheManualHasEveryCommandAndFlag(t *testing.T) {
	code, page, errOut := tool(t.Context(), "man")
	require.Equal(t, codeWell, code, errOut)
	for _, part := range []string{".TH RAILYARD 1", ".SS railyard demo failover", `\-\-script FILE`, ".SS railyard top ADDRESS", ".SH EXIT STATUS"} {
		assert.Contains(t, page, part)
	}
	assert.NotContains(t, page, "second\\-process", "what is hidden stays so")
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, ".") {
			assert.Regexp(t, `^\.(TH|SH|SS|TP|B|PP|nf|fi)\b`, line, "no word of ours is taken for a command")
		}
	}
}

func TestVersionAndCompletion(t *testing.T) {
	code, out, _ := tool(t.Context(), "version")
	assert.Equal(t, codeWell, code)
	assert.True(t, strings.HasPrefix(out, "railyard "), out)
	code, out, _ = tool(t.Context(), "version", "--json")
	assert.Equal(t, codeWell, code)
	var build map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &build))
	assert.NotEmpty(t, build["go"])
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		code, out, errOut := tool(t.Context(), "completion", shell)
		assert.Equal(t, codeWell, code, errOut)
		assert.Contains(t, out, "__complete", shell)
	}
	code, out, _ = tool(t.Context(), "__complete", "demo", "failover", "--scr")
	assert.Equal(t, codeWell, code)
	assert.Contains(t, out, "--script")
}

func TestTopForScripts(t *testing.T) {
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer right" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintln(w, `{"name":"north"}`)
	}))
	defer node.Close()
	code, _, errOut := tool(t.Context(), "top", node.URL, "--once", "--json")
	assert.Equal(t, codeFailed, code)
	assert.Contains(t, errOut, "RAILYARD_TOKEN")
	path := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(path, []byte("right\n"), 0o600))
	code, out, errOut := tool(t.Context(), "top", node.URL, "--once", "--json", "--token-file", path)
	assert.Equal(t, codeWell, code, errOut)
	assert.Equal(t, "{\"name\":\"north\"}\n", out)
}

func TestErrorsOfSeveralLinesBecomeOne(t *testing.T) {
	assert.Equal(t, "a; b", oneLine(errors.Join(errors.New("a"), errors.New("b"))))
}
