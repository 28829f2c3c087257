package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/connect"
)

// app is what the commands share.
type app struct {
	in       io.Reader
	out, err io.Writer

	redis, prefix string
	connect       connect.Options
	json          bool

	began bool // a command's own work began: what goes wrong from now on is no mistake on the command line
}

const rootHelp = `Locks on Redis: run commands under one, see who holds and who waits, free what is stuck.

Every command takes --redis, or REDIS_URL, and --prefix: see "holdfast help connection".
Exit statuses: see "holdfast help exit-status".`

const rootExample = `  holdfast run nightly-report -- ./report.sh     run a job on one of many hosts at a time
  holdfast ls 'orders:*'                         what is held or waited for
  holdfast inspect orders:42                     by whom, and who waits
  holdfast top                                   watch it live
  holdfast graph                                 who waits for whom; finds deadlocks
  holdfast doctor                                is this Redis fit for locks?`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: "holdfast", Short: "Locks on Redis, from the command line", Long: rootHelp, Example: rootExample,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true // ours has a help that fits
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetIn(a.in)
	f := root.PersistentFlags()
	f.StringVar(&a.redis, "redis", cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"), "`ADDRESS` of Redis, by default that in REDIS_URL")
	f.Lookup("redis").DefValue = "" // the variable may hold a password
	f.StringVar(&a.prefix, "prefix", cmp.Or(os.Getenv("HOLDFAST_PREFIX"), holdfast.DefaultPrefix), "what the keys start with, also HOLDFAST_PREFIX")
	f.DurationVar(&a.connect.Timeout, "timeout", 5*time.Second, "for a connection to be made, and for each answer")
	f.BoolVar(&a.connect.TLS, "tls", false, "use TLS, as rediss:// does")
	f.StringVar(&a.connect.CA, "tls-ca", "", "`FILE` with the certificates to trust")
	f.StringVar(&a.connect.Cert, "tls-cert", "", "`FILE` with the client's certificate")
	f.StringVar(&a.connect.Key, "tls-key", "", "`FILE` with its key")
	f.BoolVar(&a.connect.SkipVerify, "tls-skip-verify", false, "do not verify the server's certificate")
	root.AddCommand(
		a.runCommand(), a.lsCommand(), a.inspectCommand(), a.releaseCommand(), a.topCommand(), a.graphCommand(),
		a.doctorCommand(), a.completionCommand(), a.versionCommand(), connectionTopic(), exitStatusTopic(),
	)
	return root
}

// jsonFlag adds --json to a command.
func (a *app) jsonFlag(cmd *cobra.Command) { cmd.Flags().BoolVar(&a.json, "json", false, "print JSON") }

// execute runs a command line and returns its exit status.
func (a *app) execute(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if s, ok := errors.AsType[*status](err); ok && s.err == nil {
		return s.code // all was said
	}
	code := codeOf(err, exitFailed)
	if !a.began {
		code = exitUsage
	}
	fmt.Fprintf(a.err, "%s: %v\n", cmd.CommandPath(), err)
	if h := hint(err); h != "" {
		fmt.Fprintf(a.err, "  %s\n", h)
	}
	if code == exitUsage {
		fmt.Fprintf(a.err, "See \"%s --help\".\n", cmd.CommandPath())
	}
	if cmd.Name() == "run" && code <= exitUsage {
		return exitRunFailed // 1 and 2 are the command's own
	}
	return code
}

// work makes a command's function: errors before it are mistakes on the command line.
func (a *app) work(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.began = true
		return f(cmd, args)
	}
}
