package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"
)

func (a *app) lsCommand() *cobra.Command {
	var kind string
	cmd := &cobra.Command{
		Use: "ls [PATTERN]", Aliases: []string{"list"}, Args: cobra.MaximumNArgs(1),
		Short: "List the names that are held or waited for",
		Long: `List the names that are held or waited for, all or those that match PATTERN: * stands for anything, ? for one
character, [a-z] for one of several. Quote it, or the shell takes it for files.

The list is made with SCAN: it does not block Redis, but walks over all of its keys. "held for" is how long the oldest
of the present holders has held, "lease left" what remains to the first of them unless it is renewed.`,
		Example: `  holdfast ls
  holdfast ls 'orders:*' --kind mutex
  holdfast ls --json | jq -r '.[] | select(.queue != []) | .name'    the contended ones`,
		ValidArgsFunction: a.completeNames,
	}
	kindFlag(cmd, &kind)
	a.jsonFlag(cmd)
	cmd.RunE = a.on(func(ctx context.Context, s *session, _ *cobra.Command, args []string) error {
		if err := checkKind(kind); err != nil {
			return err
		}
		pattern := ""
		if len(args) > 0 {
			pattern = args[0]
		}
		views, err := s.lookAll(ctx, pattern, kind)
		switch {
		case err != nil:
			return err
		case a.json:
			return printJSON(a.out, toJSON(views))
		case len(views) == 0:
			fmt.Fprintln(a.err, "Nothing is held or waited for.")
		default:
			printList(a.out, views)
		}
		return nil
	})
	return cmd
}

func printList(w io.Writer, views []view) {
	rows := [][]string{{"KIND", "NAME", "HOLDERS", "WAITING", "HELD FOR", "LEASE LEFT", "HELD BY"}}
	for _, v := range views {
		rows = append(rows, append([]string{v.entry.Kind, plain(v.entry.Name)}, v.cells()...))
	}
	table(w, "", rows)
}

// cells are the columns of a list from HOLDERS on.
func (v view) cells() []string {
	if !v.state.Held() {
		return []string{"0", strconv.Itoa(v.waiting()), "-", "-", "-"}
	}
	first := v.state.Holders[0]
	by, left := who(first.Client, first.Label), first.LeaseLeft
	for _, h := range v.state.Holders[1:] {
		left = min(left, h.LeaseLeft)
	}
	if more := len(v.state.Holders) - 1; more > 0 {
		by += fmt.Sprintf(" and %d more", more)
	}
	return []string{strconv.Itoa(len(v.state.Holders)), strconv.Itoa(v.waiting()), short(v.age()), short(left), by}
}

// completeNames has the shell complete a name by those in use.
func (a *app) completeNames(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), a.connect.Timeout)
	defer cancel()
	s, err := a.open()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer func() { _ = s.close(a.connect.Timeout) }() // nothing is held
	var names []string
	for e, err := range s.client.Names(ctx, globEscaper.Replace(typed)+"*") {
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		names = append(names, e.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
