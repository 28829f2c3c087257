package integration

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// Can the checkers fail? Histories that are right are spoiled, one fault each, and must be rejected.

// checkers say what is wrong with a history; nil is nothing.
var checkers = map[string]func(events []event, capacity int64) bool{
	"tokens":    func(events []event, _ int64) bool { return checkTokens(events) == nil },
	"permits":   func(events []event, capacity int64) bool { return checkPermits(events, capacity) == nil },
	"exclusion": func(events []event, capacity int64) bool { return capacity > 1 || checkExclusion(events) == nil },
	"porcupine": func(events []event, capacity int64) bool {
		return porcupine.CheckOperationsTimeout(lockModel(capacity), operations(events), 20*time.Second) != porcupine.Illegal
	},
}

// seededFault spoils a history. It reports false if there is no place for it.
type seededFault struct {
	name  string
	spoil func(granted []event, capacity int64) ([]event, bool)
	by    []string // who must notice; exclusion is asked of mutexes only
}

var seededFaults = []seededFault{
	{"a token is given twice", repeatToken, []string{"tokens", "exclusion", "porcupine"}},
	{"a token is lower than one before", lowerToken, []string{"tokens", "porcupine"}},
	{"somebody is let in beside others", letInBeside, []string{"permits", "porcupine"}},
	{"the server ends a hold early", expireEarly, []string{"exclusion", "porcupine"}},
	{"a stranger's hold is released", releaseTwice, []string{"porcupine"}},
	{"somebody is refused though nobody holds", refuseFree, []string{"porcupine"}},
}

// middle are the places to spoil, from the middle of a history on.
func middle(granted []event) []int {
	var places []int
	for i := len(granted) / 2; i < len(granted)-1; i++ {
		places = append(places, i)
	}
	return places
}

func repeatToken(granted []event, _ int64) ([]event, bool) {
	i := len(granted) / 2
	granted[i].Token = granted[i-1].Token
	return granted, true
}

// lowerToken exchanges the tokens of two holds of which one certainly came first.
func lowerToken(granted []event, _ int64) ([]event, bool) {
	for _, i := range middle(granted) {
		for j := i + 1; j < len(granted); j++ {
			if a, b := &granted[i], &granted[j]; a.Returned < b.Called {
				a.Token, b.Token = b.Token, a.Token
				return granted, true
			}
		}
	}
	return granted, false
}

// letInBeside has one who took everything be served while the one before still believes that he holds.
func letInBeside(granted []event, capacity int64) ([]event, bool) {
	for _, i := range middle(granted) {
		a, b := granted[i], &granted[i+1]
		if end := a.believed(); a.Weight+b.Weight > capacity && a.Released == end && a.Returned+10 < end && b.believed() > end {
			b.Called = min(b.Called, a.Returned)
			b.Returned = (a.Returned + end) / 2
			return granted, true
		}
	}
	return granted, false
}

// expireEarly has the next one be served after a holder has lost a hold, but before its lease has ended.
func expireEarly(granted []event, capacity int64) ([]event, bool) {
	for i := 1; i < len(granted)-1; i++ {
		a, b := granted[i], &granted[i+1]
		if a.Lost > 0 && a.Deadline < a.ServerKeeps-10 && a.Weight+b.Weight > capacity {
			b.Returned = (a.Deadline + a.ServerKeeps) / 2
			b.Called = min(b.Called, b.Returned-5)
			return granted, true
		}
	}
	return granted, false
}

// releaseTwice has a hold of one be released a second time, and the server agree.
func releaseTwice(granted []event, _ int64) ([]event, bool) {
	for _, i := range middle(granted) {
		if a := granted[i]; a.Confirmed > 0 && !a.Unconfirmed {
			again := a
			again.Outcome = "released"
			again.Released, again.Confirmed = a.Confirmed+1, a.Confirmed+2
			return append(granted, again), true
		}
	}
	return granted, false
}

// refuseFree has somebody be refused in a pause between two holds.
func refuseFree(granted []event, capacity int64) ([]event, bool) {
	if capacity > 1 {
		return granted, false
	}
	for _, i := range middle(granted) {
		a, b := granted[i], granted[i+1]
		if quiet := a.Confirmed > 0 && !a.Unconfirmed && a.Confirmed+10 < b.Called; quiet && b.Outcome == got {
			return append(granted, event{ID: -1, Weight: 1, Called: a.Confirmed + 1, Returned: a.Confirmed + 2, Outcome: busy}), true
		}
	}
	return granted, false
}

// requireRejects spoils a history in every way that it has a place for. It returns the names of those ways.
func requireRejects(t *testing.T, events []event, capacity int64) (spoiled []string) {
	t.Helper()
	for _, f := range seededFaults {
		bad, ok := f.spoil(byGrant(events), capacity)
		if !ok {
			continue
		}
		spoiled = append(spoiled, f.name)
		for _, name := range f.by {
			if name == "exclusion" && capacity > 1 {
				continue
			}
			if checkers[name](bad, capacity) {
				t.Errorf("%s, and %s does not notice", f.name, name)
			}
		}
	}
	return spoiled
}

// invented is a history of a mutex that is right: now and then a hold is lost, a release unconfirmed, a wait given up.
func invented(n int, seed uint64) (events []event) {
	r := rand.New(rand.NewPCG(seed, 0))
	ms := func(most int64) int64 { return 1000 + r.Int64N(most*1_000_000) }
	now, token := int64(1_000_000_000), int64(1_000_000)
	for i := range n {
		e := event{ID: int64(i + 1), Process: i % 3, Goroutine: i / 3 % 3, Weight: 1, Outcome: got}
		if now += ms(1); i%4 == 0 {
			now += 10_000_000 // nobody is there
		}
		token += r.Int64N(1000) + 1
		e.Called, e.Returned, e.Token = now-ms(8), now+ms(1), token
		e.Deadline = now + 900_000_000
		e.ServerKeeps = e.Deadline + 98_000_000
		switch {
		case i%20 == 10:
			e.Lost = e.ServerKeeps + ms(1000)
			now = e.ServerKeeps + ms(1)
		case i%25 == 7:
			e.Released = e.Returned + ms(5)
			now, e.Confirmed, e.Unconfirmed = e.Released+ms(50), e.Released+ms(3000), true
		default:
			e.Released = e.Returned + ms(5)
			now = e.Released + ms(1)
			e.Confirmed = now + ms(1)
		}
		events = append(events, e)
		if i%15 == 3 {
			events = append(events, event{ID: int64(n + i), Weight: 1, Called: now, Returned: now + ms(30), Outcome: unknown})
		}
	}
	return events
}

func TestCheckersRejectSeededFaults(t *testing.T) {
	for seed := range uint64(10) {
		events := invented(120, seed)
		for name, right := range checkers {
			if !right(slices.Clone(events), 1) {
				t.Fatalf("%s rejects a history that is right: %v", name, checkExclusion(events))
			}
		}
		if spoiled := requireRejects(t, events, 1); len(spoiled) != len(seededFaults) {
			t.Errorf("only these had a place: %v", spoiled)
		}
	}
}
