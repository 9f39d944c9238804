package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// pageWidth is the width of text that does not go to a terminal.
const pageWidth = 80

func infoCommand(s streams, do works) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "info",
		Short: "Show this host's network cards: what a node would use, what not, and why",
		Args:  nothing,
		RunE: func(*cobra.Command, []string) error {
			report, err := do.look()
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, report)
			}
			columns := width(s.out)
			if columns == 0 {
				columns = pageWidth
			}
			_, err = fmt.Fprint(s.out, report.Text(columns))
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object")
	return cmd
}

// printJSON prints one object on one line, as it is: nothing is escaped for web pages.
func printJSON(out io.Writer, v any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("the result could not be printed: %w", err)
	}
	return nil
}
