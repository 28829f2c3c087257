package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/integration/server"
)

// The scripts against a model, in virtual time: any sequence of calls, among them late and duplicate ones, gets the
// same replies and pushes from both and leaves the same state, and every step keeps the promises of model_checks_test.go.
// For more of it: go test -run Model -rapid.checks 10000.

// game is a kind of name and who competes for it.
type game struct {
	name       string
	capacities []int64
	weights    []int64 // 0: all there is
	maxGrants  int     // that a run makes; 0: the script's own limit
}

var games = []game{
	{name: "Mutex", capacities: []int64{1}, weights: []int64{1}},
	{name: "RWLock", capacities: []int64{1 << 30}, weights: []int64{1, 0}},
	{name: "Semaphore", capacities: []int64{4}, weights: []int64{1, 2, 3, 0}},
	{name: "SemaphoreOfChangingCapacity", capacities: []int64{3, 3, 1, 2, 6}, weights: []int64{1, 2, 0}},
	{name: "FewGrantsARun", capacities: []int64{8}, weights: []int64{1, 1, 1, 0}, maxGrants: 2},
}

// ownMaxGrants is the limit of the scripts.
const ownMaxGrants = 128

func (g game) limit() int {
	if g.maxGrants > 0 {
		return g.maxGrants
	}
	return ownMaxGrants
}

// begin returns a function that makes worlds of the scripts in l.
func (g game) begin(t testing.TB, l lua) func(rapid.TB) *world {
	t.Helper()
	if g.maxGrants > 0 {
		l = l.replace(t, fmt.Sprintf("local MAXGRANTS = %d", ownMaxGrants), fmt.Sprintf("local MAXGRANTS = %d", g.maxGrants))
	}
	rdb := server.Shared(t).Client()
	hashes := loadScripts(t, rdb, l)
	return func(t rapid.TB) *world { return newWorld(t, g, rdb, hashes) }
}

// property returns what rapid checks.
func (g game) property(t testing.TB, l lua) func(*rapid.T) {
	t.Helper()
	begin := g.begin(t, l)
	return func(rt *rapid.T) {
		w := begin(rt)
		defer w.clear()
		w.rt = rt
		rt.Repeat(w.actions())
	}
}

func TestModel(t *testing.T) {
	setDefault(t, "rapid.checks", "100", "200")
	for _, g := range games {
		t.Run(g.name, func(t *testing.T) { rapid.Check(t, g.property(t, sources())) })
	}
}

// world is one run: a name, its model, and what the clients have sent.
type world struct {
	t       rapid.TB
	rt      *rapid.T // nil in a test of one sequence: nothing is drawn then
	game    game
	subject *subject
	model   *rules
	past    past
	latest  snapshot

	clients    []string // that live
	owners     int
	capacities map[string]int64   // that each owner asks under
	asks       map[string]request // the acquire of each owner
	sent       []request
}

var worlds atomic.Int64

func newWorld(t rapid.TB, g game, rdb *redis.Client, hashes map[string]string) *world {
	const began = 1_700_000_000_000_000
	id := fmt.Sprintf("holdfast:model:%s:%d", runID, worlds.Add(1))
	return &world{
		t: t, game: g, model: newRules(g.limit(), began, id), clients: []string{"a", "b", "c", "d"},
		subject:    &subject{rdb: rdb, sha: hashes, key: id, log: id + ":log", at: began / 1000},
		capacities: map[string]int64{}, asks: map[string]request{},
	}
}

// runID tells this process's keys from others' on the same server.
var runID = fmt.Sprint(monotonic())

func (w *world) clear() {
	w.subject.rdb.Del(context.Background(), w.subject.key, w.subject.log)
}

// send runs a script in both worlds and compares. It returns who became a holder.
func (w *world) send(r request) (granted []string) {
	w.t.Helper()
	const scriptTime = 50 // µs: no two scripts run at the same time
	w.model.us += scriptTime
	w.sent = append(w.sent, r)
	w.expire()
	w.model.lone = w.latest.lone()
	want := w.model.run(r)
	got, after, err := w.subject.run(w.model.us, r)
	if err != nil {
		w.t.Fatalf("%v: %v", r, err)
	}
	w.t.Logf("%d ms: %v -> %v", w.model.now()%1_000_000_000, r, got)
	s := step{r, got, w.latest, after, w.model.now(), w.model.clock, w.capacities, w.game.limit(), &w.past}
	w.latest = after
	w.compare(r, got, want, after)
	if err := s.verify(); err != nil {
		w.t.Fatalf("after %v: %v\n%v", r, err, after.hash)
	}
	return s.granted()
}

// expire has Redis expire the key if its time has come. Nothing may be lost with it.
func (w *world) expire() {
	w.subject.pass(w.model.now())
	if w.subject.ttl > 0 {
		return
	}
	for owner, h := range w.model.holders {
		if h.deadline > w.model.now() {
			w.t.Fatalf("the key expired, and %s holds until %d", owner, h.deadline)
		}
	}
	if w.model.latestTomb() > w.model.now() || w.model.seq > w.model.us {
		w.t.Fatalf("the key expired before its tombstones or its last token")
	}
	w.model.forget()
	w.latest = snapshot{}
}

// compare: reply, pushes and state are the model's.
func (w *world) compare(r request, got, want []int64, after snapshot) {
	w.t.Helper()
	got = append(got, want[min(len(got), len(want)):]...) // what is missing at the end goes without saying
	if r.script == acquireScript {
		w.checkBound(got, after)
		got[4] = 0
	}
	if !slices.Equal(got, want) {
		w.t.Fatalf("%v answered %v, the model %v\n%v", r, got, want, after.hash)
	}
	slices.Sort(w.model.pushes)
	if slices.Sort(after.pushes); !slices.Equal(after.pushes, w.model.pushes) {
		w.t.Fatalf("%v pushed\n%s\nthe model\n%s", r, strings.Join(after.pushes, "\n"), strings.Join(w.model.pushes, "\n"))
	}
	holders := map[string]holding{}
	for owner, h := range w.model.holders {
		holders[owner] = *h
	}
	if !maps.Equal(after.holders, holders) {
		w.t.Fatalf("after %v %v hold, in the model %v", r, after.holders, holders)
	}
	if !slices.Equal(after.queue, w.model.queue) {
		w.t.Fatalf("after %v %v wait, in the model %v", r, after.queue, w.model.queue)
	}
	w.compareRest(r, after)
}

// compareRest: the key is there, with its last token and its tombstones, whenever it is in the model.
func (w *world) compareRest(r request, after snapshot) {
	w.t.Helper()
	now := w.model.now()
	passed := func(_ string, until int64) bool { return until <= now }
	maps.DeleteFunc(after.tombs, passed)
	tombs := maps.Clone(w.model.tombs)
	maps.DeleteFunc(tombs, passed)
	switch {
	case w.model.exists != (len(after.hash) > 0):
		w.t.Fatalf("after %v there is the key: %v, in the model: %v", r, len(after.hash) > 0, w.model.exists)
	case after.fixed["seq"] != w.model.seq:
		w.t.Fatalf("after %v the last token is %d, in the model %d", r, after.fixed["seq"], w.model.seq)
	case !maps.Equal(after.tombs, tombs):
		w.t.Fatalf("after %v the tombstones are %v, in the model %v", r, after.tombs, tombs)
	}
}

// checkBound: a waiter learns a time, neither past nor later than the earliest deadline, when to ask again.
func (w *world) checkBound(got []int64, after snapshot) {
	w.t.Helper()
	if got[0] != answerWaiting && got[0] != answerBusy {
		return
	}
	for owner, h := range after.holders {
		if left := h.deadline - w.model.now(); got[4] <= 0 || got[4] > left {
			w.t.Fatalf("%s holds for %d ms, the answer says %d", owner, left, got[4])
		}
	}
}
