package integration

import (
	"fmt"
	"strings"
	"testing"
)

// Sequences that once went wrong.

// caseWorld returns a world of one game for a test of one sequence.
func caseWorld(t *testing.T, g game) *world {
	t.Helper()
	w := g.begin(t, sources())(t)
	t.Cleanup(w.clear)
	return w
}

// ask sends the first acquire of an owner, who waits if he must.
func (w *world) ask(owner string, weight, capacity int64) {
	r := request{
		script: acquireScript, owner: owner, weight: weight, capacity: capacity, depth: 1, lease: 100, window: 3000, claim: 3000,
	}
	w.capacities[owner], w.asks[owner] = capacity, r
	w.send(r)
}

// A run makes its limit of grants and leaves the rest, also when the last one goes to the caller himself.
func TestModelCaseACallersOwnGrantCountsAgainstTheLimit(t *testing.T) {
	w := caseWorld(t, game{capacities: []int64{8}, maxGrants: 2})
	w.ask("a:1", 8, 8)
	for _, owner := range []string{"b:2", "c:3", "d:4", "a:5", "b:6"} {
		w.ask(owner, 1, 8)
	}
	w.pass(200) // a:1 expires
	w.send(w.asks["d:4"])
}

// Tombstones that have passed do not pile up on a name that is never without one: used for an hour by clients that each lose
// a reply every twenty seconds.
func TestModelCaseTombstonesThatHavePassedGo(t *testing.T) {
	w := caseWorld(t, games[0])
	for n := range 180 {
		owner := fmt.Sprintf("a:%d", n+1)
		w.ask(owner, 1, 1)
		w.send(request{script: releaseScript, owner: owner, tomb: 30000, token: w.model.seq})
		w.pass(20_000)
	}
	left := 0
	for field := range w.latest.hash {
		if strings.HasPrefix(field, "x:") {
			left++
		}
	}
	if left > 40 {
		t.Errorf("%d tombstones, of which 2 still count", left)
	}
}
