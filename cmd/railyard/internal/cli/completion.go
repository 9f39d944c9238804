package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func completionCommand(s streams) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:       "completion SHELL",
		Short:     "Write what a shell needs to complete commands and flags: bash, zsh, fish or powershell",
		Example:   "  source <(railyard completion bash)",
		ValidArgs: shells,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("%s: name a shell: bash, zsh, fish or powershell", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			switch root := cmd.Root(); args[0] {
			case "bash":
				err = root.GenBashCompletionV2(s.out, true)
			case "zsh":
				err = root.GenZshCompletion(s.out)
			case "fish":
				err = root.GenFishCompletion(s.out, true)
			case "powershell":
				err = root.GenPowerShellCompletionWithDesc(s.out)
			default:
				return usagef("%s: there is no completion for %q", cmd.CommandPath(), args[0])
			}
			if err != nil {
				return fmt.Errorf("the completion could not be written: %w", err)
			}
			return nil
		},
	}
}
