package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/waitgraph"
	"github.com/holdfast-go/holdfast/hold"
)

const graphHelp = `Show which client waits for which, over all names, and find those that wait for each other: likely deadlocks.

A client is a process, or a part of one; each "holdfast run" is one, also inside another, so that rings through nested
ones are not seen. Which of its goroutines holds and which waits cannot be seen, so that two busy
clients may look as if they waited for each other. What looks so is looked at again after --confirm, and only waits for
the very same holds that are still there count. The longer it lasts, the surer it is.

A deadlock ends when one of the clients gives up: use contexts with a deadline, or the Wait option. It never comes
about if all take the names in the same order. By hand: stop one of the processes, or "holdfast release --force" a name.

The exit status is 3 if there is a likely deadlock.`

const graphExample = `  holdfast graph
  holdfast graph --dot | dot -Tsvg > waits.svg       deadlocks in red
  holdfast graph --json | jq .deadlocks
  holdfast graph >/dev/null; [ $? != 3 ] || alert    from cron`

func (a *app) graphCommand() *cobra.Command {
	var dot bool
	var confirm time.Duration
	cmd := &cobra.Command{
		Use: "graph", Args: cobra.NoArgs,
		Short: "Show which client waits for which, and find deadlocks",
		Long:  graphHelp, Example: graphExample,
	}
	a.jsonFlag(cmd)
	cmd.Flags().BoolVar(&dot, "dot", false, "print a graph for Graphviz")
	cmd.Flags().DurationVar(&confirm, "confirm", time.Second, "after what time to look again at a likely deadlock; 0 does not")
	cmd.MarkFlagsMutuallyExclusive("dot", "json")
	cmd.RunE = a.on(func(ctx context.Context, s *session, _ *cobra.Command, _ []string) error {
		g, err := s.confirmedWaits(ctx, confirm)
		if err != nil {
			return err
		}
		switch {
		case a.json:
			err = printJSON(a.out, g.toJSON())
		case dot:
			g.printDOT(a.out)
		default:
			g.print(a.out)
		}
		if err == nil && len(g.Deadlocks) > 0 {
			return silent(exitNo)
		}
		return err
	})
	return cmd
}

// waits is a graph with what is needed to show it.
type waits struct {
	*waitgraph.Graph
	views map[holdfast.Entry]view
}

// confirmedWaits looks again at what looks like a deadlock.
func (s *session) confirmedWaits(ctx context.Context, after time.Duration) (waits, error) {
	g, err := s.waits(ctx, nil)
	if err != nil || len(g.Deadlocks) == 0 || after <= 0 {
		return g, err
	}
	select {
	case <-time.After(after):
		return s.waits(ctx, g.Graph)
	case <-ctx.Done():
		return waits{}, ctx.Err()
	}
}

func (s *session) waits(ctx context.Context, earlier *waitgraph.Graph) (waits, error) {
	all, err := s.lookAll(ctx, "", "")
	if err != nil {
		return waits{}, err
	}
	names := make([]waitgraph.Name, len(all))
	views := make(map[holdfast.Entry]view, len(all))
	for i, v := range all {
		names[i], views[v.entry] = waitgraph.Name{Entry: v.entry, State: v.state}, v
	}
	return waits{waitgraph.Build(names, earlier), views}, nil
}

// who names a client.
func (w waits) who(client string) string { return who(client, w.Labels[client]) }

// heldFor tells how long the blocker of an edge has held.
func (w waits) heldFor(e waitgraph.Edge) time.Duration {
	return w.views[e.Entry].heldFor(hold.Holder{Token: e.Token})
}

// sentence says what an edge means.
func (w waits) sentence(e waitgraph.Edge) string {
	name := e.Entry.Kind + " " + plain(e.Entry.Name)
	switch {
	case e.Queued:
		return fmt.Sprintf("%s waits for %s behind %s", w.who(e.From), name, w.who(e.To))
	case e.From == e.To:
		return fmt.Sprintf("%s waits for %s, which it holds itself, for %s", w.who(e.From), name, short(w.heldFor(e)))
	}
	return fmt.Sprintf("%s waits for %s, held by %s for %s", w.who(e.From), name, w.who(e.To), short(w.heldFor(e)))
}

// around returns an edge for each step of a deadlock.
func (w waits) around(clients []string) []waitgraph.Edge {
	var edges []waitgraph.Edge
	for i, from := range clients {
		to := clients[(i+1)%len(clients)]
		if j := slices.IndexFunc(w.Edges, func(e waitgraph.Edge) bool { return e.Deadlock && e.From == from && e.To == to }); j >= 0 {
			edges = append(edges, w.Edges[j])
		}
	}
	return edges
}
