package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"railyard/snapshot"
)

func versionCommand(s streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show what this program was built of",
		Args:  nothing,
		RunE: func(*cobra.Command, []string) error {
			b := snapshot.ThisBuild()
			if asJSON {
				return printJSON(s.out, b)
			}
			text := fmt.Sprintf("railyard %s, %s, %s", b.Version, b.Go, b.Platform)
			if b.Revision != "" {
				text += fmt.Sprintf(", commit %s of %s", b.Revision, b.Time)
			}
			_, err := fmt.Fprintln(s.out, text)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object")
	return cmd
}
