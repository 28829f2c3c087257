package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
)

func (a *app) inspectCommand() *cobra.Command {
	var kind string
	cmd := &cobra.Command{
		Use: "inspect NAME", Args: cobra.ExactArgs(1),
		Short: "Show who holds a name and who waits for it",
		Long: `Show who holds a name and who waits for it, in order. A name may be in use as several kinds, which have nothing to
do with each other: all are shown, or that of --kind.

"held for" is reckoned from the fencing token: divided by 1024 it is about the server's time of the grant in microseconds.
A holder that is renewed never has less than about half of its lease left. One that is near its end has crashed, hangs or
is cut off, or was just let in from the queue: then it has at most three seconds until its first renewal. A waiter that is
"gone" was not heard of for some seconds and is passed over.

The exit status is 3 if nobody holds the name or waits for it.`,
		Example: `  holdfast inspect orders:42
  holdfast inspect --json --kind sem api | jq '[.[].holders[].weight] | add'    units in use`,
		ValidArgsFunction: a.completeNames,
	}
	kindFlag(cmd, &kind)
	a.jsonFlag(cmd)
	cmd.RunE = a.on(func(ctx context.Context, s *session, _ *cobra.Command, args []string) error {
		views, err := s.lookAt(ctx, args[0], kind)
		if err != nil {
			return err
		}
		if a.json {
			if err := printJSON(a.out, toJSON(views)); err != nil {
				return err
			}
		}
		if len(views) == 0 {
			fmt.Fprintf(a.err, "%s: nobody holds it or waits for it.\n", plain(args[0]))
			return silent(exitNo)
		}
		if !a.json {
			for _, v := range views {
				v.print(a.out)
			}
		}
		return nil
	})
	return cmd
}

// lookAt inspects a name as every kind, or as the one that a flag names, and returns those in use.
func (s *session) lookAt(ctx context.Context, name, kind string) ([]view, error) {
	if err := checkKind(kind); err != nil {
		return nil, err
	}
	var views []view
	for _, k := range kinds {
		if kind != "" && k != kind {
			continue
		}
		v, err := s.look(ctx, holdfast.Entry{Kind: k, Name: name})
		if err != nil {
			return nil, err
		}
		if v.busy() {
			views = append(views, v)
		}
	}
	return views, nil
}

// print shows everything about a name.
func (v view) print(w io.Writer) {
	fmt.Fprintf(w, "%s %s: %s, %d waiting\n", v.entry.Kind, plain(v.entry.Name), count(len(v.state.Holders), "holder"), v.waiting())
	if v.state.Held() {
		rows := [][]string{{"HELD BY", "HAS", "DEPTH", "HELD FOR", "LEASE LEFT", "TOKEN", "OWNER"}}
		for _, h := range v.state.Holders {
			rows = append(rows, []string{
				who(h.Client, h.Label), share(v.entry.Kind, h.Weight), strconv.Itoa(h.Depth), short(v.heldFor(h)), short(h.LeaseLeft),
				strconv.FormatInt(h.Token, 10), h.Owner,
			})
		}
		table(w, "  ", rows)
	}
	if len(v.state.Queue) > 0 {
		rows := [][]string{{"WAITING", "WANTS", "", "OWNER"}}
		for _, q := range v.state.Queue {
			wants, gone := share(v.entry.Kind, q.Weight), ""
			if v.entry.Kind == "sem" {
				wants += fmt.Sprint(" of ", q.Capacity)
			}
			if !q.Alive {
				gone = "gone"
			}
			rows = append(rows, []string{who(q.Client, q.Label), wants, gone, q.Owner})
		}
		table(w, "  ", rows)
	}
}
