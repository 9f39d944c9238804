package cli

import (
	"context"
	"io"

	"railyard/cmd/railyard/internal/demo"
	"railyard/cmd/railyard/internal/info"
	"railyard/cmd/railyard/internal/perf"
)

// works is what the commands do once a command line is understood. Tests put in others, that start nothing.
type works struct {
	look       func() (info.Report, error)
	readScript func(path string) (string, error)
	failover   func(context.Context, demo.Options) (demo.Summary, error)
	browse     func(url string)
	demoHalf   func(context.Context, io.Reader, io.Writer) error
	measure    func(context.Context, perf.Options) (perf.Result, error)
	serve      func(context.Context, perf.ServeOptions) error
	perfHalf   func(ctx context.Context, rails int, in io.Reader, out io.Writer) error
}

func realWorks() works {
	return works{look: info.Look, readScript: readScript, failover: demo.Run, browse: browse, demoHalf: demo.Serve,
		measure: perf.Run, serve: perf.Serve, perfHalf: perf.ServeSecond}
}
