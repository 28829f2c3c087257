// Package waitgraph finds out which client waits for which over all names, and who of them wait for each other.
//
// Redis knows clients, not goroutines: it cannot be told whether the one that waits is the one that holds. What is
// called a deadlock here is therefore likely, not certain, the more so the longer it lasts: see Build.
package waitgraph

import (
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/hold"
)

// Name is what was seen of one name.
type Name struct {
	Entry holdfast.Entry
	State holdfast.State
}

// Edge is one that waits and one that it waits for.
type Edge struct {
	Entry           holdfast.Entry
	Waiter, Blocker string // owners
	From, To        string // their clients; the same when goroutines of one client wait for each other
	Queued          bool   // the blocker does not hold: it is next ahead in the queue
	Token           int64  // of the blocker's hold
	Deadlock        bool   // part of a likely deadlock
}

// Graph is all of them.
type Graph struct {
	Edges     []Edge            // by name, in the order of the queues
	Labels    map[string]string // of the clients in Edges
	Deadlocks [][]string        // clients that wait for each other, each the shortest way round
}

// Build makes the graph of what was seen. With an earlier one, only waits that were there before count for
// deadlocks: what is just contended moves on between two looks, and one look at many names is not one moment.
func Build(names []Name, earlier *Graph) *Graph {
	g := &Graph{Labels: make(map[string]string)}
	for _, n := range names {
		g.add(n)
	}
	stuck := blocked(names)
	next := make(map[string][]string) // client → clients, among those that are stuck
	for _, e := range g.Edges {
		if stuck[e.From] && stuck[e.To] && e.From != e.To && (earlier == nil || earlier.has(e)) && !slices.Contains(next[e.From], e.To) {
			next[e.From] = append(next[e.From], e.To)
		}
	}
	for _, together := range components(next) {
		g.Deadlocks = append(g.Deadlocks, around(together, next))
		for i, e := range g.Edges {
			if slices.Contains(together, e.From) && slices.Contains(next[e.From], e.To) && slices.Contains(together, e.To) {
				g.Edges[i].Deadlock = true
			}
		}
	}
	return g
}

// add makes the edges of one name. A waiter whose share would fit waits for the one ahead; one for whom too much is
// taken waits for the holders.
func (g *Graph) add(n Name) {
	var used int64
	for _, h := range n.State.Holders {
		used += h.Weight
	}
	queue := live(n.State)
	for i, w := range queue {
		e := Edge{Entry: n.Entry, Waiter: w.Owner, From: w.Client}
		switch {
		case used+w.Weight > w.Capacity:
			for _, h := range n.State.Holders {
				e.Blocker, e.To, e.Token = h.Owner, h.Client, h.Token
				g.Labels[h.Client] = h.Label
				g.Edges = append(g.Edges, e)
			}
		case i > 0:
			e.Blocker, e.To, e.Queued = queue[i-1].Owner, queue[i-1].Client, true
			g.Edges = append(g.Edges, e)
		default:
			continue // it is being granted
		}
		g.Labels[w.Client] = w.Label
	}
}

// live are the waiters that are not passed over.
func live(s holdfast.State) []hold.Waiter {
	var queue []hold.Waiter
	for _, w := range s.Queue {
		if w.Alive {
			queue = append(queue, w)
		}
	}
	return queue
}

func (g *Graph) has(e Edge) bool {
	return slices.ContainsFunc(g.Edges, func(o Edge) bool {
		return o.Entry == e.Entry && o.Waiter == e.Waiter && o.Blocker == e.Blocker
	})
}

// blocked returns the clients that cannot go on even if all others do: those that are left when, again and again,
// everybody whose waits can be served is taken away with all that it holds. It takes semaphores and readers for what
// they are: who waits for one of many holders is not stuck before all of them are.
func blocked(names []Name) map[string]bool {
	stuck := make(map[string]bool)
	for _, n := range names {
		for _, w := range live(n.State) {
			stuck[w.Client] = true
		}
	}
	for {
		still := make(map[string]bool)
		for _, n := range names {
			behind := false // a waiter that cannot be served: nobody behind it is
			for _, w := range live(n.State) {
				need := w.Weight
				for _, h := range n.State.Holders {
					if stuck[h.Client] && h.Client != w.Client { // a client's goroutines do not stand in for each other
						need += h.Weight
					}
				}
				if behind = behind || need > w.Capacity; behind {
					still[w.Client] = true
				}
			}
		}
		if len(still) == len(stuck) {
			return stuck
		}
		stuck = still
	}
}

// around is the shortest way from the first of the clients back to it.
func around(together []string, next map[string][]string) []string {
	start := slices.MinFunc(together, strings.Compare)
	ways := [][]string{{start}}
	seen := make(map[string]bool)
	for len(ways) > 0 {
		way := ways[0]
		ways = ways[1:]
		for _, to := range next[way[len(way)-1]] {
			if to == start {
				return way
			}
			if !seen[to] {
				seen[to] = true
				ways = append(ways, append(slices.Clone(way), to))
			}
		}
	}
	return nil // cannot be: every member of a component is on a cycle
}
