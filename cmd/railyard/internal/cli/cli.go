package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"unicode"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	codeWell   = 0
	codeFailed = 1
	codeUsage  = 2
)

// usageError is a mistake of whoever typed the command.
type usageError struct{ err error }

func (u usageError) Error() string { return u.err.Error() }
func (u usageError) Unwrap() error { return u.err }

// errInterrupted says that a signal ended the command.
var errInterrupted = errors.New("interrupted; what this command had started has ended")

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// streams are what a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// Main runs the command line and gives the exit code.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// From the first signal on the next one is the system's: it ends the process at once.
	defer context.AfterFunc(ctx, stop)()
	return run(ctx, args, streams{in, out, errOut})
}

func run(ctx context.Context, args []string, s streams) int {
	return runWith(ctx, args, s, realWorks())
}

func runWith(ctx context.Context, args []string, s streams, do works) int {
	root := rootCommand(s, do)
	// What cobra refuses before a command runs is wrong usage too, and its errors have no type.
	understood := false
	root.PersistentPreRun = func(*cobra.Command, []string) { understood = true }
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return codeWell
	}
	fmt.Fprintln(s.err, "railyard:", oneLine(err))
	var usage usageError
	if errors.As(err, &usage) || !understood {
		return codeUsage
	}
	return codeFailed
}

// oneLine keeps the promise of one clear line: joined errors have several, and what was typed may have anything in it.
func oneLine(err error) string {
	text := strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, text)
}

func rootCommand(s streams, do works) *cobra.Command {
	root := &cobra.Command{
		Use:   "railyard",
		Short: "See, measure and break networks of many rails",
		Long: "railyard shows what network cards this host has for rails (info), measures puts, gets and messages\n" +
			"over them (perf), shows a running node (top), and cuts virtual cables under a load that checks itself\n" +
			"(demo failover).",
		Args:              group,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Example: "  railyard demo failover            # pull cables on a page, and see nothing get lost\n" +
			"  railyard info                     # what this host has for rails\n" +
			"  railyard perf put-bw --rails 2    # two rails over loopback\n" +
			"  railyard top 127.0.0.1:7480       # a running node, in the terminal",
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%s: %w (see %s --help)", cmd.CommandPath(), err, cmd.CommandPath())
	})
	root.AddCommand(infoCommand(s, do), perfCommand(s, do), demoCommand(s, do), topCommand(s),
		versionCommand(s), manCommand(s), completionCommand(s))
	root.SetHelpCommand(helpCommand())
	return root
}

// helpCommand is cobra's, which takes every word that it does not know for a question about the whole.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, left, err := cmd.Root().Find(args)
			if err != nil || len(left) > 0 && about.HasSubCommands() {
				return usagef("there is no help about %q; %s --help lists what there is", strings.Join(args, " "), cmd.Root().Name())
			}
			about.InitDefaultHelpFlag() // which is shown too
			return about.Help()
		},
	}
}

// group is for commands that only hold others.
func group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" {
			names = append(names, c.Name())
		}
	}
	return usagef("%s: there is no %q; there are %s", cmd.CommandPath(), args[0], strings.Join(names, ", "))
}

// nothing is for commands without arguments.
func nothing(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no argument, and %q is one", cmd.CommandPath(), args[0])
	}
	return nil
}
