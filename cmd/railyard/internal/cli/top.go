package cli

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"railyard/cmd/railyard/internal/top"
)

// tokenVariable is where a node's token may be: on the command line everybody on this host could read it.
const tokenVariable = "RAILYARD_TOKEN"

type topFlags struct {
	once, json bool
	tokenFile  string
}

func topCommand(s streams) *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use:   "top ADDRESS",
		Short: "Show a node's peers and rails in the terminal, live",
		Long: "What the admin page of a node shows (Admin in its settings), in a terminal: rails with state, rates and round trips,\n" +
			"failovers with their gaps, events. Colors are left out where NO_COLOR is set.",
		Example: "  railyard top 127.0.0.1:7480\n" +
			"  railyard top 127.0.0.1:7480 --once          # one view, for a log\n" +
			"  railyard top 127.0.0.1:7480 --once --json   # all of it, for scripts",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("%s: one address of a node's admin page is wanted, such as 127.0.0.1:7480", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0], s) },
	}
	cmd.Flags().BoolVar(&f.once, "once", false, "print one view and end")
	cmd.Flags().BoolVar(&f.json, "json", false, "with --once: print the node's state as one object")
	cmd.Flags().StringVar(&f.tokenFile, "token-file", "", "`FILE` with the node's token (or put it into "+tokenVariable+")")
	return cmd
}

func (f *topFlags) run(cmd *cobra.Command, address string, s streams) error {
	token := os.Getenv(tokenVariable)
	if f.tokenFile != "" {
		b, err := os.ReadFile(f.tokenFile)
		if err != nil {
			return usagef("--token-file: %w", err)
		}
		token = strings.TrimSpace(string(b))
	}
	node, err := top.At(address, token)
	columns := width(s.out)
	switch {
	case err != nil:
		return usageError{err}
	case f.json && !f.once:
		return usagef("%s: --json goes with --once: a live view is for people", cmd.CommandPath())
	case !f.once && columns == 0:
		return usagef("%s: a live view needs a terminal: use --once", cmd.CommandPath())
	}
	if f.json {
		text, err := node.Raw(cmd.Context())
		if err != nil {
			return fmt.Errorf("node at %s: %w", address, err)
		}
		_, err = fmt.Fprintf(s.out, "%s\n", bytes.TrimSpace(text))
		return err
	}
	o := top.Options{Node: node, In: s.in, Out: s.out, Color: columns > 0 && os.Getenv("NO_COLOR") == ""}
	if f.once {
		if columns == 0 {
			columns = pageWidth
		}
		err = top.Once(cmd.Context(), o, columns)
	} else {
		err = top.Run(cmd.Context(), o)
	}
	if err != nil {
		return fmt.Errorf("node at %s: %w", address, err)
	}
	return nil
}
