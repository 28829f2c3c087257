package integration

import (
	"math"
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
	"server":    func(events []event, capacity int64) bool { return checkServer(events, capacity) == nil },
	"exclusion": func(events []event, capacity int64) bool { return capacity > 1 || checkExclusion(events) == nil },
	"porcupine": func(events []event, capacity int64) bool {
		return porcupine.CheckOperationsTimeout(lockModel(capacity), operations(events), 20*time.Second) != porcupine.Illegal
	},
}

// seededFault spoils a history. It reports false if there is no place for it.
type seededFault struct {
	name  string
	spoil func(granted []event, capacity int64) ([]event, bool)
	by    []string // who must notice; exclusion and porcupine are asked of mutexes only
}

var seededFaults = []seededFault{
	{"a token is given twice", repeatToken, []string{"tokens", "exclusion", "porcupine"}},
	{"a token is lower than one before", lowerToken, []string{"tokens", "porcupine"}},
	{"somebody is let in beside others", letInBeside, []string{"permits", "server", "exclusion", "porcupine"}},
	{"the server ends a hold early", expireEarly, []string{"server", "exclusion", "porcupine"}},
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

// requireRejects spoils a history in every way that it has a place for. It returns the names of those ways. Without the
// strict order of a mutex porcupine can take for ever to find that nothing explains a history; see TestLockModel for those.
func requireRejects(t *testing.T, events []event, capacity int64) (spoiled []string) {
	t.Helper()
	for _, f := range seededFaults {
		bad, ok := f.spoil(byGrant(events), capacity)
		if !ok {
			continue
		}
		spoiled = append(spoiled, f.name)
		for _, name := range f.by {
			if capacity > 1 && (name == "exclusion" || name == "porcupine") {
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

// The model itself, on histories short enough to see through. The operations follow one another except where it says else.
func TestLockModel(t *testing.T) {
	const everything = 3
	take := func(id, weight, token int64) porcupine.Operation {
		return porcupine.Operation{Input: op{opAcquire, id, weight}, Output: reply{OK: true, Token: token}}
	}
	refuse := func(id, weight int64) porcupine.Operation {
		return porcupine.Operation{Input: op{opAcquire, id, weight}, Output: reply{}}
	}
	give := func(id, weight int64) porcupine.Operation {
		return porcupine.Operation{Input: op{opRelease, id, weight}, Output: reply{OK: true}}
	}
	end := func(id, weight int64) porcupine.Operation {
		return porcupine.Operation{Input: op{opEnd, id, weight}, Output: reply{}, Return: math.MaxInt64}
	}
	maybe := func(kind opKind, id, weight int64) porcupine.Operation {
		return porcupine.Operation{Input: op{kind, id, weight}, Output: reply{Unknown: true}, Return: math.MaxInt64}
	}
	for _, c := range []struct {
		name  string
		ops   []porcupine.Operation
		legal bool
	}{
		{"readers share", []porcupine.Operation{take(1, 1, 1), take(2, 1, 2), give(1, 1), give(2, 1)}, true},
		{"a writer beside a reader", []porcupine.Operation{take(1, 1, 1), take(2, everything, 2)}, false},
		{"a reader beside a writer", []porcupine.Operation{take(1, everything, 1), take(2, 1, 2)}, false},
		{"a writer after readers", []porcupine.Operation{take(1, 1, 1), take(2, 1, 2), give(1, 1), give(2, 1), take(3, everything, 3)}, true},
		{"as many as there are", []porcupine.Operation{take(1, 2, 1), take(2, 1, 2)}, true},
		{"one too many", []porcupine.Operation{take(1, 2, 1), take(2, 2, 2)}, false},
		{"refused while it fits", []porcupine.Operation{take(1, 2, 1), refuse(2, 1)}, false},
		{"refused while it does not fit", []porcupine.Operation{take(1, 2, 1), refuse(2, 2)}, true},
		{"a token that does not grow", []porcupine.Operation{take(1, 3, 5), give(1, 3), take(2, 3, 5)}, false},
		{"released by a stranger", []porcupine.Operation{take(1, 1, 1), give(2, 1)}, false},
		{"released twice", []porcupine.Operation{take(1, 1, 1), give(1, 1), give(1, 1)}, false},
		{"taken after the lease", []porcupine.Operation{take(1, 3, 1), end(1, 3), take(2, 3, 2)}, true},
		{"taken before the end of the lease", []porcupine.Operation{take(1, 3, 1), take(2, 3, 2), end(1, 3)}, false},
		{"taken after a release that may have been", []porcupine.Operation{take(1, 3, 1), maybe(opRelease, 1, 3), take(2, 3, 2)}, true},
		{"refused after a release that may not have been", []porcupine.Operation{take(1, 3, 1), maybe(opRelease, 1, 3), refuse(2, 3)}, true},
		{"refused for one who may have it", []porcupine.Operation{maybe(opAcquire, 1, 3), refuse(2, 1)}, true},
		{"refused for one who cannot be enough", []porcupine.Operation{maybe(opAcquire, 1, 1), refuse(2, 1)}, false},
	} {
		for i := range c.ops {
			c.ops[i].ClientId, c.ops[i].Call = i, int64(10*i)
			if c.ops[i].Return == 0 {
				c.ops[i].Return = int64(10*i + 5)
			}
		}
		if legal := porcupine.CheckOperations(lockModel(everything), c.ops); legal != c.legal {
			t.Errorf("%s: accepted %v", c.name, legal)
		}
	}
}
