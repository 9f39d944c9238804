// Clients tries an NBD server with the programs that people use: nbdinfo, qemu-io, qemu-img, nbdcopy and fio.
//
//	clients             # a device in memory, over a unix socket and, with TLS, over TCP
//	clients --uri URI   # a server that is there; what it holds is overwritten
//
// It fails where one of them does, or finds other data than it wrote. The programs must be installed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"railyard/examples/replicator/nbd"
)

const (
	deviceSize = 256 << 20 // bytes, of the device in memory
	sourceSize = 64<<20 + 4096
	stepLimit  = 2 * time.Minute
)

func main() {
	uri := flag.String("uri", "", "the server to try, as libnbd writes it; without it, one in this process")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: clients [--uri URI]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *uri, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// step is one use of a client. What it says is shown.
type step struct {
	name string
	do   func(ctx context.Context) (string, error)
}

func run(ctx context.Context, uri string, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "clients")
	if err != nil {
		return fmt.Errorf("no folder for images: %w", err)
	}
	defer os.RemoveAll(dir)
	var steps []step
	if uri == "" {
		s, err := serve(ctx, dir)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.stop()) }()
		uri = s.uri
		steps = append(steps, step{"TLS: nbdcopy and back", func(ctx context.Context) (string, error) { return tlsCopy(ctx, dir, s.tls) }})
	}
	source := filepath.Join(dir, "source")
	if err := makeSource(source); err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	failed := 0
	for _, s := range append(plain(uri, dir, source), steps...) {
		began := time.Now()
		limited, done := context.WithTimeout(ctx, stepLimit)
		said, err := s.do(limited)
		done()
		verdict := "ok"
		if err != nil {
			failed++
			verdict, said = "FAILED", err.Error()
		}
		fmt.Fprintf(table, "%s\t%s\t%v\t%s\n", s.name, verdict, time.Since(began).Round(time.Millisecond), said)
	}
	_ = table.Flush()
	if failed > 0 {
		return fmt.Errorf("%d of the clients failed", failed)
	}
	return nil
}

// served is a device in memory.
type served struct {
	uri  string // over a unix socket
	tls  string // over TCP with TLS
	stop func() error
}

func serve(ctx context.Context, dir string) (served, error) {
	cert, err := certificate(dir)
	if err != nil {
		return served{}, err
	}
	server, err := nbd.New(nbd.Config{TLS: cert, Exports: []nbd.Export{{
		Name: "disk", Description: "a device in memory", Device: nbd.NewMemory(deviceSize), MultiConn: true,
	}}})
	if err != nil {
		return served{}, err
	}
	socket := filepath.Join(dir, "socket")
	local, err := nbd.Listen(ctx, "unix:"+socket)
	if err != nil {
		return served{}, err
	}
	tcp, err := nbd.Listen(ctx, "localhost:0")
	if err != nil {
		_ = local.Close()
		return served{}, err
	}
	inner, cancel := context.WithCancel(ctx)
	ended := make(chan error, 2)
	go func() { ended <- server.Serve(inner, local) }()
	go func() { ended <- server.Serve(inner, tcp) }()
	_, port, _ := strings.Cut(tcp.Addr().String(), ":")
	return served{
		uri: "nbd+unix:///?socket=" + socket,
		tls: fmt.Sprintf("nbds://localhost:%s/disk?tls-certificates=%s", port, dir),
		stop: func() error {
			cancel()
			return errors.Join(<-ended, <-ended)
		},
	}, nil
}

// command runs a program, and gives what it printed; where it fails, also within the error.
func command(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		return text, fmt.Errorf("%s: %w: %s", name, err, text)
	}
	return text, nil
}
