package waitgraph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/waitgraph"
	"github.com/holdfast-go/holdfast/hold"
)

const readers = 1 << 30

// name makes a name of words like "A:1" for who holds or waits and how much. Upper-case letters are clients.
func name(kind, of string, capacity int64, holders, queue string) waitgraph.Name {
	n := waitgraph.Name{Entry: holdfast.Entry{Kind: kind, Name: of}}
	parse := func(text string, add func(client, owner string, weight int64)) {
		for _, word := range strings.Fields(text) {
			client, weight, _ := strings.Cut(word, ":")
			w := int64(1)
			if weight != "" {
				if _, err := fmt.Sscan(weight, &w); err != nil {
					panic(err)
				}
			}
			add(client, client+":"+of, w)
		}
	}
	parse(holders, func(client, owner string, weight int64) {
		n.State.Holders = append(n.State.Holders, hold.Holder{Owner: owner, Client: client, Weight: weight})
	})
	parse(queue, func(client, owner string, weight int64) {
		alive := client == strings.ToUpper(client)
		client = strings.ToUpper(client)
		n.State.Queue = append(n.State.Queue, hold.Waiter{Owner: owner, Client: client, Weight: weight, Capacity: capacity, Alive: alive})
	})
	return n
}

func mutex(of, holder, queue string) waitgraph.Name { return name("mutex", of, 1, holder, queue) }

func TestDeadlocks(t *testing.T) {
	write := fmt.Sprint(":", readers)
	for _, test := range []struct {
		what      string
		names     []waitgraph.Name
		deadlocks string // the ways round
		edges     int
	}{
		{"nothing", nil, "", 0},
		{"a wait", []waitgraph.Name{mutex("a", "A", "B C")}, "", 2},
		{"a chain", []waitgraph.Name{mutex("a", "A", "B"), mutex("b", "B", "C")}, "", 2},
		{"two clients", []waitgraph.Name{mutex("a", "A", "B"), mutex("b", "B", "A")}, "AB", 2},
		{"three clients, and one behind", []waitgraph.Name{
			mutex("a", "A", "C"), mutex("b", "B", "A D"), mutex("c", "C", "B"),
		}, "ABC", 4},
		{"two at once", []waitgraph.Name{
			mutex("a", "A", "B"), mutex("b", "B", "A"), mutex("c", "C", "D"), mutex("d", "D", "C"),
		}, "AB CD", 4},
		{"goroutines of one client", []waitgraph.Name{mutex("a", "A", "A B"), mutex("b", "A", "A")}, "", 3},
		{"a waiter that is gone", []waitgraph.Name{mutex("a", "A", "b"), mutex("b", "B", "A")}, "", 1},
		{"free just now", []waitgraph.Name{mutex("a", "", "A B")}, "", 1},
		{"one of two places comes free", []waitgraph.Name{
			name("sem", "s", 2, "A C", "B"), mutex("b", "B", "A"),
		}, "", 3},
		{"no place can come free", []waitgraph.Name{
			name("sem", "s", 2, "A C", "B"), mutex("b", "B", "A C"),
		}, "AB", 4},
		{"a reader behind a writer behind a reader", []waitgraph.Name{
			name("rw", "r", readers, "A", "B"+write+" C"), mutex("c", "C", "A"),
		}, "ACB", 3},
		{"a reader beside a reader", []waitgraph.Name{
			name("rw", "r", readers, "A", "C"), mutex("c", "C", "A"),
		}, "", 1},
		{"a writer waits for all readers", []waitgraph.Name{
			name("rw", "r", readers, "A D", "B"+write), mutex("b", "B", "D"),
		}, "BD", 3},
	} {
		g := waitgraph.Build(test.names, nil)
		var got []string
		for _, way := range g.Deadlocks {
			got = append(got, strings.Join(way, ""))
		}
		if way := strings.Join(got, " "); way != test.deadlocks || len(g.Edges) != test.edges {
			t.Errorf("%s: deadlocks %q, want %q; edges %+v, want %d", test.what, way, test.deadlocks, g.Edges, test.edges)
		}
	}
}

func TestOnlyEdgesOfTheCycleAreMarked(t *testing.T) {
	g := waitgraph.Build([]waitgraph.Name{mutex("a", "A", "B C"), mutex("b", "B", "A")}, nil)
	var marked []string
	for _, e := range g.Edges {
		if e.Deadlock {
			marked = append(marked, e.From+e.To)
		}
	}
	if !slices.Equal(marked, []string{"BA", "AB"}) {
		t.Errorf("marked: %v", marked)
	}
}

func TestWhatMovesOnIsNoDeadlock(t *testing.T) {
	first := waitgraph.Build([]waitgraph.Name{mutex("a", "A", "B"), mutex("b", "B", "A")}, nil)
	again := waitgraph.Build([]waitgraph.Name{mutex("a", "A", "B"), mutex("b", "B", "A")}, first)
	if len(again.Deadlocks) != 1 {
		t.Errorf("the same waits: %v", again.Deadlocks)
	}
	moved := mutex("b", "B", "A")
	moved.State.Holders[0].Owner = "B:another hold"
	later := waitgraph.Build([]waitgraph.Name{mutex("a", "A", "B"), moved}, first)
	if len(later.Deadlocks) != 0 {
		t.Errorf("another hold: %v", later.Deadlocks)
	}
}
