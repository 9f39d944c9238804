package lint

import (
	"go/ast"
	"sort"
	"strconv"
	"strings"
	"testing"
)

// wall says what the production files of one package may import besides the standard library.
type wall struct {
	own     []string // packages of ours
	modules []string // others' modules, with what is below them
}

// Other people's modules by the names of the house plan.
const (
	protoactor = "github.com/asynkron/protoactor-go"
	protobuf   = "google.golang.org/protobuf"
	zap        = "go.uber.org/zap"
	prometheus = "github.com/prometheus/client_golang"
	xsys       = "golang.org/x/sys"
	rdmamap    = "github.com/Mellanox/rdmamap"
	netlink    = "github.com/vishvananda/netlink"
	purego     = "github.com/ebitengine/purego"
	cobra      = "github.com/spf13/cobra"
	otel       = "go.opentelemetry.io/otel"
	memberlist = "github.com/hashicorp/memberlist"
	bubbletea  = "charm.land/bubbletea"
)

// library is everything that users can import, bottom up. Each may import only packages named for it.
var library = map[string]wall{
	"wire":             {modules: []string{protobuf}},
	"rma":              {own: []string{"wire"}},
	"endpoint/session": {own: []string{"wire", "rma"}},
	"supervision":      {},
	"rail":             {own: []string{"wire", "rma", "supervision"}, modules: []string{protoactor, rdmamap, netlink, xsys, zap}},
	"rail/tcp":         {own: []string{"rail", "rma", "wire"}, modules: []string{xsys}},
	"rail/verbs":       {own: []string{"rail", "rma", "wire"}, modules: []string{xsys, purego}},
	"rail/railtest":    {own: []string{"rail", "rma", "wire"}, modules: testModules},
	"endpoint": {own: []string{"endpoint/session", "rail", "rma", "wire", "supervision"},
		modules: []string{protoactor, zap}},
	"snapshot": {own: []string{"rail", "wire"}},
	"metrics":  {own: []string{"rail", "snapshot", "wire"}, modules: []string{prometheus}},
	"admin":    {own: []string{"metrics", "rail", "snapshot"}, modules: []string{prometheus}},
	"actors": {own: []string{"admin", "snapshot", "endpoint", "endpoint/session", "rail", "rma", "wire", "supervision", "rail/tcp", "rail/verbs"},
		modules: []string{protoactor, protobuf, zap, xsys}},
	"actors/tracing":       {modules: []string{protoactor, otel}},
	"discovery":            {own: []string{"endpoint"}, modules: []string{zap}},
	"discovery/memberlist": {modules: []string{memberlist, zap}},
}

// testModules is what tests, and the suite that tests transports, use besides.
var testModules = []string{"github.com/stretchr/testify", "go.uber.org/goleak", "pgregory.net/rapid"}

// programs import what users can import, and the modules named. Their own internal packages are theirs.
var programs = map[string]wall{
	"cmd": {modules: []string{protoactor, protobuf, zap, xsys, netlink, cobra, bubbletea}},
	// What several programs share: no user can import it.
	"internal": {own: []string{"rma"}, modules: []string{protoactor, protobuf, xsys}},
	// What Railyard is compared with. It is a module of its own, so nobody else gets these modules.
	"bench": {own: []string{"actors", "endpoint", "rail", "rma", "internal/certs", "internal/child", "internal/hist"},
		modules: []string{protoactor, protobuf, xsys, "github.com/anthdm/hollywood", "google.golang.org/grpc", "github.com/nats-io"}},
	// An example shows what an application does: it has no business in the protocol.
	"examples": {own: []string{"actors", "endpoint", "rail", "rma", "supervision"}, modules: []string{protoactor, protobuf, zap}},
}

// purest is the replicator's protocol, which knows nothing of the world: it imports the standard library alone.
const purest = "examples/replicator/replica"

// beyond are imports over a wall that the house plan does not name, each with its reason.
var beyond = map[[2]string]string{
	{"rail/tcp", zap}:                                    "it logs once what a socket option refused",
	{"endpoint", protobuf}:                               "handshake bodies are protobuf messages",
	{"actors", "google.golang.org/grpc"}:                 "ClusterRemote refuses the connections of protoactor's own remote",
	{"supervision", protoactor}:                          "the adapter alone; see adapterOnly",
	{"cmd/railyard/internal/sabotage", module + "/wire"}: "it forges frames, so that the demo's checks are seen to fail",
}

// wallsOf finds what a file imports over its package's wall.
func wallsOf(files []*source) []finding {
	var found []finding
	for _, s := range production(files) {
		w, ok := wallFor(s)
		if !ok {
			found = append(found, finding{s.path, "no wall is written down for its package: add it to the house plan and here"})
			continue
		}
		for _, imp := range s.file.Imports {
			name := importPath(imp)
			if allowed(s, w, name) {
				continue
			}
			found = append(found, finding{s.at(imp.Pos()), s.dir() + " must not import " + name})
		}
	}
	return found
}

func wallFor(s *source) (wall, bool) {
	if s.dir() == purest {
		return wall{}, true
	}
	if w, ok := library[s.dir()]; ok {
		return w, true
	}
	for top, w := range programs {
		if s.in(top) {
			return w, true
		}
	}
	return wall{}, false
}

func allowed(s *source, w wall, name string) bool {
	if name == "testing" || strings.HasPrefix(name, "testing/") {
		return s.dir() == "rail/railtest"
	}
	if isStandard(name) {
		return true
	}
	if own, ok := strings.CutPrefix(name, module+"/"); ok {
		if contains(w.own, own) || beyond[[2]string{s.dir(), name}] != "" {
			return true
		}
		// The tool may use all of the library that users see, and its own packages.
		_, library := library[own]
		if s.in("examples") && s.dir() != purest && below(own, example(s.dir())) { // a larger example has packages of its own
			return true
		}
		inner := own == "wire" || own == "endpoint/session" || own == "rail/railtest"
		if s.in("bench") && below(own, "bench/internal") {
			return true
		}
		return s.in("cmd") && (below(own, "cmd") || below(own, "internal") || library && !inner)
	}
	for _, m := range w.modules {
		if below(name, m) {
			return true
		}
	}
	for k := range beyond {
		if k[0] == s.dir() && below(name, k[1]) {
			return true
		}
	}
	return false
}

// example gives the folder of the example that a folder below examples belongs to.
func example(dir string) string {
	parts := strings.SplitN(dir, "/", 3)
	return strings.Join(parts[:min(2, len(parts))], "/")
}

// testWalls finds what test files import that not even tests may.
func testWalls(files []*source) []finding {
	var found []finding
	for _, s := range goFiles(files) {
		for _, imp := range s.file.Imports {
			name := importPath(imp)
			switch {
			case below(name, module+"/test") && !s.in("test"):
				found = append(found, finding{s.at(imp.Pos()), "nothing imports test/"})
			case below(name, module+"/cmd") && !s.in("cmd"), below(name, module+"/examples") && !s.in("examples"):
				found = append(found, finding{s.at(imp.Pos()), "a program is imported by nobody"})
			case below(name, module+"/bench") && !s.in("bench"):
				found = append(found, finding{s.at(imp.Pos()), "bench is a module of its own"})
			}
		}
	}
	return found
}

// adapterOnly: in supervision the adapter file alone knows protoactor.
func adapterOnly(files []*source) []finding {
	var found []finding
	for _, s := range production(files) {
		if s.dir() != "supervision" || strings.HasPrefix(s.path, "supervision/adapter") {
			continue
		}
		for _, imp := range s.file.Imports {
			if below(importPath(imp), protoactor) {
				found = append(found, finding{s.at(imp.Pos()), "only supervision's adapter imports protoactor"})
			}
		}
	}
	return found
}

// dialing are the standard library's ways to a socket.
var dialing = []string{"Dial", "DialTimeout", "DialTCP", "DialUDP", "DialUnix", "DialIP", "Dialer", "Listen", "ListenTCP",
	"ListenUDP", "ListenUnix", "ListenPacket", "ListenIP", "ListenConfig", "ListenMulticastUDP"}

// sockets finds library code outside the transports that opens sockets. The admin page is no rail: it listens for people.
func sockets(files []*source) []finding {
	var found []finding
	for _, s := range production(files) {
		if _, ok := library[s.dir()]; !ok || s.in("rail/tcp", "rail/verbs", "admin") {
			continue
		}
		for _, use := range uses(s, "net", dialing...) {
			found = append(found, finding{s.at(use.Pos()), "only rail/tcp and rail/verbs make socket calls; this is net." + use.Sel.Name})
		}
	}
	return found
}

// uses finds the selectors of a package's names in a file; none named: all of them.
func uses(s *source, pkg string, names ...string) []*ast.SelectorExpr {
	local := ""
	for _, imp := range s.file.Imports {
		if importPath(imp) != pkg {
			continue
		}
		local = pkg[strings.LastIndex(pkg, "/")+1:]
		if local == "v2" { // math/rand/v2
			local = "rand"
		}
		if imp.Name != nil {
			local = imp.Name.Name
		}
	}
	if local == "" {
		return nil
	}
	var list []*ast.SelectorExpr
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == local && (len(names) == 0 || contains(names, sel.Sel.Name)) {
			list = append(list, sel)
		}
		return true
	})
	return list
}

func importPath(imp *ast.ImportSpec) string {
	name, err := strconv.Unquote(imp.Path.Value)
	if err != nil {
		return imp.Path.Value
	}
	return name
}

// isStandard: the first element of a package of the standard library has no dot; ours begin with the module's name.
func isStandard(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return first != module && !strings.Contains(first, ".")
}

func below(name, top string) bool { return name == top || strings.HasPrefix(name, top+"/") }

func contains(list []string, s string) bool {
	for _, have := range list {
		if have == s {
			return true
		}
	}
	return false
}

func TestWalls(t *testing.T) {
	holds(t, wallsOf)
	holds(t, testWalls)
	holds(t, adapterOnly)
	holds(t, sockets)
}

// TestWallsHaveNoGapsNobodyUses keeps the list of exceptions honest.
func TestWallsHaveNoGapsNobodyUses(t *testing.T) {
	used := make(map[[2]string]bool)
	for _, s := range production(tree(t)) {
		for _, imp := range s.file.Imports {
			for k := range beyond {
				if k[0] == s.dir() && below(importPath(imp), k[1]) {
					used[k] = true
				}
			}
		}
	}
	var stale []string
	for k := range beyond {
		if !used[k] {
			stale = append(stale, k[0]+" imports "+k[1])
		}
	}
	sort.Strings(stale)
	for _, s := range stale {
		t.Errorf("the exception %q is not needed any more: take it out", s)
	}
}

func TestWallsCatch(t *testing.T) {
	catches(t, wallsOf, []snippet{
		{"upwards", "wire/x.go", "package wire\nimport _ \"railyard/rma\"", "wire must not import railyard/rma"},
		{"sideways", "rail/tcp/x.go", "package tcp\nimport _ \"railyard/endpoint/session\"", "rail/tcp must not import"},
		{"a stranger", "rma/x.go", "package rma\nimport _ \"example.org/x\"", "rma must not import example.org/x"},
		{"protobuf in session", "endpoint/session/x.go", "package session\nimport _ \"google.golang.org/protobuf/proto\"", "must not import"},
		{"testing in production", "rail/x.go", "package rail\nimport _ \"testing\"", "rail must not import testing"},
		{"the suite in production", "actors/x.go", "package actors\nimport _ \"railyard/rail/railtest\"", "must not import"},
		{"the session in the tool", "cmd/railyard/internal/x/x.go", "package x\nimport _ \"railyard/endpoint/session\"", "must not import"},
		{"a package nobody planned", "gadget/x.go", "package gadget", "no wall is written down"},
		{"an example in the protocol", "examples/x/x.go", "package main\nimport _ \"railyard/wire\"", "must not import"},
		{"an example in another", "examples/x/y/x.go", "package y\nimport _ \"railyard/examples/z\"", "must not import"},
		{"a part of an example", "examples/x/y/x.go", "package y\nimport _ \"railyard/examples/x/z\"", ""},
		{"the replicator's protocol", purest + "/x.go", "package replica\nimport _ \"railyard/examples/replicator/store\"", "must not import"},
		{"the replicator's protocol and the library", purest + "/x.go", "package replica\nimport _ \"railyard/rma\"", "must not import"},
		{"as planned", "rma/x.go", "package rma\nimport (\n_ \"sync\"\n_ \"railyard/wire\"\n)", ""},
		{"the tool", "cmd/railyard/x.go", "package main\nimport (\n_ \"railyard/actors\"\n_ \"github.com/spf13/cobra\"\n)", ""},
	})
	catches(t, testWalls, []snippet{
		{"test imported", "endpoint/x_test.go", "package endpoint\nimport _ \"railyard/test/sim\"", "nothing imports test/"},
		{"bench imported", "cmd/railyard/x.go", "package main\nimport _ \"railyard/bench/internal/cell\"", "a module of its own"},
		{"tool imported", "actors/x_test.go", "package actors\nimport _ \"railyard/cmd/railyard/internal/cable\"", "imported by nobody"},
	})
	catches(t, adapterOnly, []snippet{
		{"policy knows actors", "supervision/policy.go", "package supervision\nimport _ \"" + protoactor + "/actor\"", "only supervision's adapter"},
		{"the adapter", "supervision/adapter.go", "package supervision\nimport _ \"" + protoactor + "/actor\"", ""},
	})
	catches(t, sockets, []snippet{
		{"a socket in endpoint", "endpoint/x.go", "package endpoint\nimport \"net\"\nfunc f() { net.Dial(\"tcp\", \"\") }", "net.Dial"},
		{"an address", "endpoint/x.go", "package endpoint\nimport \"net\"\nvar e = net.ErrClosed", ""},
	})
}
