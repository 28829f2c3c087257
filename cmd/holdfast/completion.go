package main

import "github.com/spf13/cobra"

func (a *app) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use: "completion bash|zsh|fish", Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), ValidArgs: shells,
		Short: "Print a script that has your shell complete commands, flags and names",
		Long: `Print a script that has your shell complete commands, flags and names. Names are asked of the Redis in REDIS_URL.

  bash  needs the package bash-completion
  zsh   needs "autoload -Uz compinit && compinit" in ~/.zshrc`,
		Example: `  source <(holdfast completion bash)                                          for this shell
  holdfast completion bash > /etc/bash_completion.d/holdfast                  for all
  holdfast completion zsh > "${fpath[1]}/_holdfast"
  holdfast completion fish > ~/.config/fish/completions/holdfast.fish`,
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			switch root := cmd.Root(); args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			default:
				return root.GenFishCompletion(a.out, true)
			}
		}),
	}
}
