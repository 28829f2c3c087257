//go:build unix

package main_test

import (
	"strings"
	"testing"
)

// edge is what graph prints as JSON.
type edge struct {
	Kind, Name  string
	Waiter, For struct{ Owner, Client, Label string }
	HeldFor     int64 `json:"held_for_ms"`
	Deadlock    bool
}

type graph struct {
	Waits     []edge
	Deadlocks [][]edge
}

func TestGraphFindsADeadlock(t *testing.T) {
	s := newSite(t)
	s.want(0, []string{"graph"}, "Nobody waits.")
	a, b, c := s.client("anna"), s.client("bert"), s.client("carl")
	s.lock(a.Mutex("first"))
	s.lock(b.FairLock("second"))
	s.wait(c, c.Mutex("first"), mutex("first"))
	r := s.want(0, []string{"graph"}, "carl/"+c.ID()[:6]+" waits for mutex first, held by anna/"+a.ID()[:6]+" for ")
	if strings.Contains(r.out, "DEADLOCK") {
		t.Errorf("a wait is no deadlock:\n%s", r.out)
	}

	s.wait(b, b.Mutex("first"), mutex("first"))
	stop := s.wait(a, a.FairLock("second"), fair("second"))
	s.want(3, []string{"graph", "--confirm", "100ms"}, "LIKELY DEADLOCK: ", "! anna/", "! bert/", "  carl/")

	g := fromJSON[graph](t, s.want(3, []string{"graph", "--json"}))
	if len(g.Waits) != 3 || len(g.Deadlocks) != 1 || len(g.Deadlocks[0]) != 2 {
		t.Fatalf("as JSON: %+v", g)
	}
	for _, e := range g.Waits {
		if e.Deadlock != (e.Waiter.Label != "carl") || e.HeldFor <= 0 {
			t.Errorf("wait %+v", e)
		}
	}
	dot := s.want(3, []string{"graph", "--dot"}, "digraph waits {", `[label="carl/`, "color=red")
	if n := strings.Count(dot.out, "->"); n != 3 || strings.Count(dot.out, "color=red") != 4 {
		t.Errorf("%d edges, or not two of them and two clients red:\n%s", n, dot.out)
	}

	stop() // anna gives up
	if g := fromJSON[graph](t, s.want(0, []string{"graph", "--json"})); len(g.Deadlocks) != 0 || len(g.Waits) != 2 {
		t.Errorf("afterwards: %+v", g)
	}
}
