package snapshot

import (
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
)

// modulePath is this module, as build information names it.
const modulePath = "railyard"

// Build is what this program was built of.
type Build struct {
	// Version is the module's, or the revision that it was built at; "unknown" where the program was built without either.
	Version string `json:"version"`
	// Revision and Time are the commit's; empty where the build does not know them. Modified: the tree had other changes.
	Revision string `json:"revision"`
	Time     string `json:"time"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// ThisBuild tells of the program that runs.
var ThisBuild = sync.OnceValue(func() Build {
	info, ok := debug.ReadBuildInfo()
	return buildOf(info, ok)
})

func buildOf(info *debug.BuildInfo, ok bool) Build {
	b := Build{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if !ok {
		return b
	}
	version := ""
	if info.Main.Path == modulePath {
		version = info.Main.Version
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Revision = s.Value
			case "vcs.time":
				b.Time = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	for _, m := range info.Deps {
		if m.Path == modulePath {
			version = m.Version
		}
	}
	switch {
	case version != "" && version != "(devel)":
		b.Version = version
	case b.Revision != "":
		b.Version = b.Revision[:min(12, len(b.Revision))]
		if b.Modified {
			b.Version += "+changes"
		}
	}
	b.Version = strings.TrimSpace(b.Version)
	return b
}
