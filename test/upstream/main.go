package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const protoactor = "github.com/asynkron/protoactor-go"

// timeLimit bounds the run.
const timeLimit = 20 * time.Minute

func main() {
	list := flag.Bool("list", false, "say what is changed and what does not run")
	verbose := flag.Bool("v", false, "show each test")
	flag.Parse()
	if *list {
		show(os.Stdout)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, done := context.WithTimeout(ctx, timeLimit)
	err := run(ctx, *verbose)
	done()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "upstream:", err)
		os.Exit(1)
	}
}

func show(out io.Writer) {
	for _, p := range patches {
		fmt.Fprintf(out, "%s\n\t- %s\n\t+ %s\n", p.file, strings.TrimSpace(p.was), strings.TrimSpace(p.is))
	}
	for _, file := range switchedOff {
		fmt.Fprintf(out, "%s\n\tis no comment any more\n", file)
	}
	for _, l := range left {
		fmt.Fprintf(out, "not run: %s: %s\n", l.where, l.why)
	}
}

// run copies, changes, and tests.
func run(ctx context.Context, verbose bool) (err error) {
	folder, err := os.MkdirTemp("", "upstream")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	root, err := output(ctx, "list", "-m", "-f", "{{.Dir}}", protoactor)
	if err != nil {
		return err
	}
	copied := filepath.Join(folder, "protoactor-go")
	if err := copyModule(root, copied); err != nil {
		return err
	}
	if err := apply(copied, patches); err != nil {
		return err
	}
	for _, file := range switchedOff {
		if err := switchOn(copied, file); err != nil {
			return err
		}
	}
	modfile, err := replaced(ctx, folder, copied)
	if err != nil {
		return err
	}
	args := []string{"test", "-modfile=" + modfile, "-count=1", "-timeout", timeLimit.String()}
	if verbose {
		args = append(args, "-v")
	}
	for _, p := range packages {
		args = append(args, protoactor+"/"+p)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// output gives what a go command prints.
func output(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stderr = os.Stderr
	b, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(b)), nil
}

// copyModule copies files, which can be changed then.
func copyModule(from, to string) error {
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		part, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		target := filepath.Join(to, part)
		if d.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o600)
	})
}

// replaced makes a go.mod, with its go.sum, in which the copy stands for protoactor.
func replaced(ctx context.Context, folder, copied string) (string, error) {
	own, err := output(ctx, "env", "GOMOD")
	if err != nil {
		return "", err
	}
	modfile := filepath.Join(folder, "go.mod")
	for _, ext := range []string{".mod", ".sum"} {
		text, err := os.ReadFile(strings.TrimSuffix(own, ".mod") + ext)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(folder, "go"+ext), text, 0o600); err != nil {
			return "", err
		}
	}
	_, err = output(ctx, "mod", "edit", "-replace", protoactor+"="+copied, modfile)
	return modfile, err
}
