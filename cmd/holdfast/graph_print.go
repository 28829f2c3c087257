package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/waitgraph"
)

// print writes the graph for people.
func (w waits) print(out io.Writer) {
	if len(w.Edges) == 0 {
		fmt.Fprintln(out, "Nobody waits.")
		return
	}
	for _, e := range w.Edges {
		mark := "  "
		if e.Deadlock {
			mark = "! "
		}
		fmt.Fprintln(out, mark+w.sentence(e))
	}
	for _, clients := range w.Deadlocks {
		var names []string
		for _, c := range clients {
			names = append(names, w.who(c))
		}
		fmt.Fprintf(out, "\nLIKELY DEADLOCK: %s → %s\n", strings.Join(names, " → "), names[0])
		for _, e := range w.around(clients) {
			fmt.Fprintln(out, "  "+w.sentence(e))
		}
	}
}

// printDOT writes the graph for Graphviz.
func (w waits) printDOT(out io.Writer) {
	fmt.Fprintln(out, "digraph waits {\n  rankdir=LR\n  node [shape=box]")
	in := make(map[string]bool)
	for _, e := range w.Edges {
		in[e.From] = in[e.From] || e.Deadlock
		in[e.To] = in[e.To] || e.Deadlock
	}
	for _, client := range slices.Sorted(maps.Keys(in)) {
		color := ""
		if in[client] {
			color = ", color=red"
		}
		fmt.Fprintf(out, "  %s [label=%s%s]\n", dotQuote(client), dotQuote(w.who(client)), color)
	}
	for _, e := range w.Edges {
		attrs := "label=" + dotQuote(e.Entry.Kind+" "+plain(e.Entry.Name))
		if e.Queued {
			attrs += ", style=dashed"
		}
		if e.Deadlock {
			attrs += ", color=red"
		}
		fmt.Fprintf(out, "  %s -> %s [%s]\n", dotQuote(e.From), dotQuote(e.To), attrs)
	}
	fmt.Fprintln(out, "}")
}

// dotQuote writes a string of DOT, in which a backslash begins an escape, too.
func dotQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// graphJSON is the graph in JSON.
type graphJSON struct {
	Waits     []edgeJSON   `json:"waits"`
	Deadlocks [][]edgeJSON `json:"deadlocks"` // each the way round, edge by edge
}

type edgeJSON struct {
	Kind     string     `json:"kind"`
	Name     string     `json:"name"`
	Waiter   clientJSON `json:"waiter"`
	For      clientJSON `json:"for"`
	Queued   bool       `json:"queued"` // that one waits, too, ahead
	HeldFor  int64      `json:"held_for_ms,omitempty"`
	Deadlock bool       `json:"deadlock"`
}

type clientJSON struct {
	Owner  string `json:"owner"`
	Client string `json:"client"`
	Label  string `json:"label,omitempty"`
}

func (w waits) toJSON() graphJSON {
	g := graphJSON{Waits: w.edges(w.Edges), Deadlocks: [][]edgeJSON{}}
	for _, clients := range w.Deadlocks {
		g.Deadlocks = append(g.Deadlocks, w.edges(w.around(clients)))
	}
	return g
}

func (w waits) edges(edges []waitgraph.Edge) []edgeJSON {
	list := []edgeJSON{}
	for _, e := range edges {
		j := edgeJSON{
			Kind: e.Entry.Kind, Name: e.Entry.Name,
			Waiter: clientJSON{e.Waiter, e.From, w.Labels[e.From]}, For: clientJSON{e.Blocker, e.To, w.Labels[e.To]},
			Queued: e.Queued, Deadlock: e.Deadlock,
		}
		if !e.Queued {
			j.HeldFor = w.heldFor(e).Milliseconds()
		}
		list = append(list, j)
	}
	return list
}
