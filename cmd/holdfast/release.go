package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
)

func (a *app) releaseCommand() *cobra.Command {
	var kind string
	var force, yes bool
	cmd := &cobra.Command{
		Use: "release --force NAME", Args: cobra.ExactArgs(1),
		Short: "Take a name away from whoever holds it",
		Long: `Take a name away from whoever holds it, and let the next waiter in. For emergencies: a holder that still works learns
of it at once or with its next renewal, at most a third of its lease later, and until then two believe that they hold
the name. A holder that crashed needs no help: its lease ends by itself, see "lease left" in "holdfast inspect".

It shows the holders and asks first; --yes does not ask. --force must be said, for there is no other way to release
what somebody else holds. If the name is held as several kinds, --kind says which is meant.

The exit status is 3 if nobody held the name, or if the answer was no.`,
		Example: `  holdfast release --force orders:42
  holdfast release --force --yes --kind sem api`,
		ValidArgsFunction: a.completeNames,
	}
	kindFlag(cmd, &kind)
	a.jsonFlag(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "release although others hold it")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.RunE = a.on(func(ctx context.Context, s *session, _ *cobra.Command, args []string) error {
		if !force {
			return usage("what others hold can only be released with --force")
		}
		v, err := s.held(ctx, args[0], kind)
		if err != nil {
			return err
		}
		if v == nil {
			fmt.Fprintf(a.err, "%s: nobody holds it.\n", plain(args[0]))
			return silent(exitNo)
		}
		if !yes && !a.confirm(ctx, v) {
			fmt.Fprintln(a.err, "Nothing was released.")
			return silent(exitNo)
		}
		if err := s.forceRelease(ctx, v.entry); err != nil {
			return err
		}
		if a.json {
			return printJSON(a.out, struct {
				Released nameJSON `json:"released"`
			}{v.toJSON()})
		}
		fmt.Fprintf(a.out, "Released %s %s from %s.\n", v.entry.Kind, plain(v.entry.Name), count(len(v.state.Holders), "holder"))
		return nil
	})
	return cmd
}

// held finds the one kind of a name that is held; nil if none is.
func (s *session) held(ctx context.Context, name, kind string) (*view, error) {
	views, err := s.lookAt(ctx, name, kind)
	if err != nil {
		return nil, err
	}
	var found *view
	var held []string
	for i, v := range views {
		if v.state.Held() {
			found, held = &views[i], append(held, v.entry.Kind)
		}
	}
	if len(held) > 1 {
		return nil, usage("%s is held as %s: say --kind", plain(name), strings.Join(held, " and as "))
	}
	return found, nil
}

// confirm shows what would be released and asks. Anything but yes is no, also the end of the input.
func (a *app) confirm(ctx context.Context, v *view) bool {
	v.print(a.err)
	fmt.Fprint(a.err, "Take it away from them? Those who still work are not stopped at once. [y/N] ")
	answer := make(chan string, 1)
	go func() { // ends with the process at the latest
		line, _ := bufio.NewReader(a.in).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case line := <-answer:
		return line == "y" || line == "yes"
	case <-ctx.Done():
		fmt.Fprintln(a.err)
		return false
	}
}

func (s *session) forceRelease(ctx context.Context, e holdfast.Entry) error {
	switch e.Kind {
	case "fair":
		return s.client.FairLock(e.Name).ForceRelease(ctx)
	case "rw":
		return s.client.RWLock(e.Name).ForceRelease(ctx)
	case "sem":
		return s.client.Semaphore(e.Name, 1).ForceRelease(ctx)
	default:
		return s.client.Mutex(e.Name).ForceRelease(ctx)
	}
}
