package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// manCommand writes the manual, so that it says what the commands say.
func manCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:     "man",
		Short:   "Write the manual page",
		Example: "  railyard man | man -l -",
		Args:    nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(s.out, manual(cmd.Root()))
			return err
		},
	}
}

// manual gives the page in the language of man.
func manual(root *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1\n.SH NAME\n%s \\- %s\n", strings.ToUpper(root.Name()), root.Name(), roff(root.Short))
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n.SH COMMANDS\n", roff(root.Long))
	for _, c := range root.Commands() {
		manualOf(&b, c)
	}
	b.WriteString(".SH EXIT STATUS\n.TP\n0\nAll went well.\n.TP\n1\nThe run failed, or a promise was broken.\n" +
		".TP\n2\nThe command line was wrong.\n")
	return b.String()
}

func manualOf(b *strings.Builder, c *cobra.Command) {
	if !c.IsAvailableCommand() {
		return
	}
	fmt.Fprintf(b, ".SS %s\n%s\n", roff(c.UseLine()), roff(paragraph(c)))
	if help := c.Flags().Lookup("help"); help != nil { // cobra has made it for the command that runs
		help.Hidden = true
	}
	if flags := strings.TrimRight(c.LocalFlags().FlagUsages(), "\n"); flags != "" {
		fmt.Fprintf(b, ".PP\n.nf\n%s\n.fi\n", roff(flags))
	}
	if c.Example != "" {
		fmt.Fprintf(b, ".PP\nExamples:\n.PP\n.nf\n%s\n.fi\n", roff(c.Example))
	}
	for _, below := range c.Commands() {
		manualOf(b, below)
	}
}

func paragraph(c *cobra.Command) string {
	if c.Long != "" {
		return c.Long
	}
	return c.Short + "."
}

// roff keeps text as it is: no line of it is a command, no word of it a sign.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
