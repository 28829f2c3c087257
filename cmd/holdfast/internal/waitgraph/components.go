package waitgraph

import (
	"maps"
	"slices"
)

// components returns the groups of two and more in which each can be reached from each (R. Tarjan, Depth-first search and
// linear graph algorithms, 1972).
func components(next map[string][]string) [][]string {
	t := tarjan{next: next, index: make(map[string]int), low: make(map[string]int), on: make(map[string]bool)}
	for _, v := range slices.Sorted(maps.Keys(next)) { // the same order each time
		if t.index[v] == 0 {
			t.visit(v)
		}
	}
	return t.found
}

type tarjan struct {
	next  map[string][]string
	index map[string]int // order of discovery, from 1
	low   map[string]int // the earliest that is reached
	stack []string
	on    map[string]bool // the stack
	found [][]string
}

func (t *tarjan) visit(v string) {
	t.index[v] = len(t.index) + 1
	t.low[v] = t.index[v]
	t.stack = append(t.stack, v)
	t.on[v] = true
	for _, w := range t.next[v] {
		switch {
		case t.index[w] == 0:
			t.visit(w)
			t.low[v] = min(t.low[v], t.low[w])
		case t.on[w]:
			t.low[v] = min(t.low[v], t.index[w])
		}
	}
	if t.low[v] < t.index[v] {
		return
	}
	i := slices.Index(t.stack, v)
	group := slices.Clone(t.stack[i:])
	t.stack = t.stack[:i]
	for _, w := range group {
		t.on[w] = false
	}
	if len(group) > 1 {
		t.found = append(t.found, group)
	}
}
