// Package conformance is the suite that every primitive must pass, on every server: one set of scenarios, run
// over a table of kinds. What only one primitive promises (upgrades, weights) has groups of its own.
//
// It is a normal package, not a test, so that the core and the integration module run the same scenarios on
// different servers.
package conformance

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/config"
)

// atOnce is how many scenarios of a Run are at work at a time. They mostly wait, so there may be many more than
// processors; that is why they are not left to testing's Parallel. Without a subscription they wait even more.
const (
	atOnce        = 14
	atOncePolling = 2 * atOnce
)

// Run runs the suite as subtests of t. newRedis returns a new go-redis client of the server under test and closes
// it at the end of the test it is given; every holdfast client gets one of its own and the given options. The
// suite touches only keys of names that it makes up, under the default prefix.
func Run(t *testing.T, newRedis func(t testing.TB) redis.UniversalClient, options ...holdfast.Option) {
	t.Helper()
	var cfg config.Config
	for _, o := range options {
		o(&cfg)
	}
	s := &suite{newRedis: newRedis, options: options, polling: cfg.PollOnly, slots: make(chan struct{}, atOnce)}
	if s.polling {
		s.slots = make(chan struct{}, atOncePolling)
	}
	var wg sync.WaitGroup
	group := func(name string, k kind, slots int, scenarios []scenario) {
		wg.Go(func() {
			t.Run(name, func(t *testing.T) { s.run(t, k, slots, scenarios) })
		})
	}
	for _, k := range kinds {
		group(k.name, k, 1, slices.Concat(exclusion, waits, releases, leases, contexts, reentry, losses, doing, closing, checks))
	}
	group("RWLock", writeSide, 1, rwScenarios())
	group("semaphore", semaphoreOf(1, 3), 1, semScenarios)
	group("side by side", mutexKind, 1, sideBySide)
	if !s.polling {
		wg.Wait() // a crowd works its server hard: it is left alone
	}
	for _, k := range kinds {
		group(k.name+" in a crowd", k, s.crowdSlots(), crowd)
	}
	group("semaphore in a crowd", semaphoreOf(1, 3), s.crowdSlots(), semCrowd)
	wg.Wait()
}

// scenario is one case.
type scenario struct {
	name string
	run  func(e *env)
	only func(k kind) bool // nil: every kind
}

func reentrant(k kind) bool    { return k.reentrant }
func notReentrant(k kind) bool { return !k.reentrant }

// suite is what the scenarios of one Run share.
type suite struct {
	newRedis func(t testing.TB) redis.UniversalClient
	options  []holdfast.Option
	polling  bool // the clients do not subscribe

	slots  chan struct{}
	taking sync.Mutex // held by whoever takes slots, so that two do not wait for each other's
}

// crowdSlots is what a crowd takes: everything, but for one that mostly waits for its next poll.
func (s *suite) crowdSlots() int {
	if s.polling {
		return 1
	}
	return atOnce
}

// take takes n slots and returns what gives them back.
func (s *suite) take(n int) (giveBack func()) {
	s.taking.Lock()
	defer s.taking.Unlock()
	for range n {
		s.slots <- struct{}{}
	}
	return func() {
		for range n {
			<-s.slots
		}
	}
}

// run runs the scenarios beside each other, as far as there are slots for them.
func (s *suite) run(t *testing.T, k kind, slots int, scenarios []scenario) {
	var wg sync.WaitGroup
	for _, sc := range scenarios {
		if sc.only != nil && !sc.only(k) {
			continue
		}
		wg.Go(func() {
			defer s.take(slots)()
			t.Run(sc.name, func(t *testing.T) { sc.run(s.newEnv(t, k)) })
		})
	}
	wg.Wait()
}

// newEnv makes a place for one scenario: a name that nobody else uses, of which nothing may be left at the end.
func (s *suite) newEnv(t *testing.T, k kind) *env {
	name := strings.ReplaceAll(t.Name(), "/", ".") + "." + time.Now().Format("150405.000000000")
	e := &env{T: t, suite: s, kind: k, name: name, raw: s.newRedis(t)}
	t.Cleanup(e.free) // after the clients were closed, before raw is
	return e
}

// quiet keeps expected trouble out of the output.
var quiet = holdfast.Logger(slog.New(slog.DiscardHandler))
