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
		t: t, game: g, model: newRules(g.limit(), began), clients: []string{"a", "b", "c", "d"},
		subject:    &subject{rdb: rdb, sha: hashes, key: id, log: id + ":log", at: began / 1000},
		capacities: map[string]int64{}, asks: map[string]request{},
	}
}

// runID tells this process's keys from others' on the same server.
var runID = fmt.Sprint(monotonic())

func (w *world) clear() {
	w.subject.rdb.Del(context.Background(), w.subject.key, w.subject.log)
}

// pick draws one of values and skips the action if there is none. The order of values must not be a map's.
func pick[V any](w *world, what string, values []V) V {
	if len(values) == 0 {
		w.rt.Skip("no " + what)
	}
	return rapid.SampledFrom(values).Draw(w.rt, what)
}

func (w *world) holders() []string { return slices.Sorted(maps.Keys(w.model.holders)) }

// waiters lists the owners in the queue whose clients live.
func (w *world) waiters() (owners []string) {
	for _, p := range w.model.queue {
		if slices.Contains(w.clients, clientOf(p.owner)) {
			owners = append(owners, p.owner)
		}
	}
	return owners
}

// actions are what can happen next. rapid draws them by name, evenly.
func (w *world) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"acquire":         func(*rapid.T) { w.send(w.newOwner(pick(w, "client", w.clients))) },
		"acquire too":     func(*rapid.T) { w.send(w.newOwner(pick(w, "client", w.clients))) },
		"acquire as well": func(*rapid.T) { w.send(w.newOwner(pick(w, "client", w.clients))) },
		"poll":            func(*rapid.T) { w.send(w.asks[pick(w, "waiter", w.waiters())]) },
		"re-enter":        func(*rapid.T) { w.reenter() },
		"renew":           func(*rapid.T) { w.renew() },
		"release":         func(*rapid.T) { w.release(pick(w, "holder", w.holders()), nil) },
		"release to":      func(*rapid.T) { w.releaseNext() },
		"partial":         func(*rapid.T) { w.partial() },
		"cancel":          func(*rapid.T) { w.cancel() },
		"force":           func(*rapid.T) { w.force() },
		"crash":           func(*rapid.T) { w.crash() },
		"late":            func(*rapid.T) { w.send(pick(w, "copy", w.sent)) },
		"twice":           func(*rapid.T) { w.twice() },
		"time passes":     func(*rapid.T) { w.pass(rapid.Int64Range(1, 1500).Draw(w.rt, "ms")) },
		"a deadline":      func(*rapid.T) { w.passTo() },
		"a stall":         func(*rapid.T) { w.pass(rapid.Int64Range(1500, 40000).Draw(w.rt, "ms")) },
	}
}

// newOwner is what a new owner will ask.
func (w *world) newOwner(client string) request {
	w.owners++
	r := request{
		script: acquireScript, owner: fmt.Sprintf("%s:%d", client, w.owners), depth: 1,
		capacity: pick(w, "capacity", w.game.capacities), weight: pick(w, "weight", w.game.weights),
		lease:  pick(w, "lease", []int64{100, 1000, 3000, 30000}),
		window: pick(w, "window", []int64{3000, 3000, 1000, 0}),
		claim:  pick(w, "claim", []int64{3000, 3000, 500}),
	}
	if r.weight = min(r.weight, r.capacity); r.weight == 0 {
		r.weight = r.capacity
	}
	w.capacities[r.owner], w.asks[r.owner] = r.capacity, r
	return r
}

func (w *world) reenter() {
	owner := pick(w, "holder", w.holders())
	r := w.asks[owner]
	r.depth = w.model.holders[owner].depth + rapid.Int64Range(0, 1).Draw(w.rt, "deeper")
	r.weight = rapid.SampledFrom([]int64{r.weight, 1, r.capacity}).Draw(w.rt, "weight")
	w.send(r)
}

// handed is the highest token that a holder handed out: above its own if the tenure was passed on locally, by no more
// than the time since then, on a clock that may be a little fast.
func (w *world) handed(owner string) int64 {
	h := w.model.holders[owner]
	if rapid.Bool().Draw(w.rt, "passed on") {
		fast := rapid.SampledFrom([]int64{0, 0, 300_000}).Draw(w.rt, "fast")
		return max(h.token, min(w.model.us+fast, h.deadline*1000))
	}
	return h.token
}

func (w *world) renew() {
	owner := pick(w, "holder", w.holders())
	w.send(request{
		script: renewScript, owner: owner, lease: w.asks[owner].lease, token: w.handed(owner),
		depth: w.model.holders[owner].depth,
	})
}

func (w *world) release(owner string, next *request) {
	w.send(request{script: releaseScript, owner: owner, tomb: w.tomb(), token: w.handed(owner), next: next})
}

func (w *world) tomb() int64 { return rapid.SampledFrom([]int64{0, 0, 0, 0, 30000}).Draw(w.rt, "tomb") }

// releaseNext names another owner of the same client, who may have asked before.
func (w *world) releaseNext() {
	owner := pick(w, "holder", w.holders())
	known := slices.DeleteFunc(slices.Sorted(maps.Keys(w.asks)), func(other string) bool {
		return other == owner || clientOf(other) != clientOf(owner)
	})
	var next request
	if len(known) > 0 && rapid.Bool().Draw(w.rt, "known") {
		next = w.asks[pick(w, "next", known)]
	} else {
		next = w.newOwner(clientOf(owner))
	}
	next.window = max(next.window, 1000)
	w.asks[next.owner] = next
	w.release(owner, &next)
}

// partial releases one level, or all but a read hold under a write hold. The release of an earlier level may come late.
func (w *world) partial() {
	owner := pick(w, "holder", w.holders())
	h := w.model.holders[owner]
	level := request{
		script: releaseScript, owner: owner, depth: max(h.depth-1, 1), token: w.handed(owner), weight: w.asks[owner].weight,
	}
	downgrade := level
	downgrade.weight = 1
	w.send(rapid.SampledFrom([]request{level, downgrade}).Draw(w.rt, "partial"))
	if rapid.Bool().Draw(w.rt, "late") {
		w.send(level)
	}
}

func (w *world) cancel() {
	w.send(request{script: releaseScript, owner: pick(w, "waiter", w.waiters()), tomb: w.tomb()})
}

func (w *world) force() {
	w.send(request{script: releaseScript, owner: pick(w, "client", w.clients) + ":0", force: true})
}

// crash: a client sends nothing any more; what it sent may still arrive.
func (w *world) crash() {
	if len(w.clients) < 3 {
		w.rt.Skip("only two are left")
	}
	dead := pick(w, "client", w.clients)
	w.clients = slices.DeleteFunc(w.clients, func(c string) bool { return c == dead })
}

// twice sends something a second time at once: that changes nothing, unless it meets those that the first run let in.
func (w *world) twice() {
	r := pick(w, "copy", w.sent)
	if r.force {
		w.rt.Skip("force meets the next holders")
	}
	before := w.model.us
	granted := w.send(r)
	once := w.latest
	w.model.us = before // the same µs
	w.send(r)
	own := r.script == releaseScript && slices.Contains(granted, r.owner)
	if !own && len(granted) < w.game.limit() && !maps.Equal(once.hash, w.latest.hash) {
		w.t.Fatalf("the second run changed\n%v to\n%v", once.hash, w.latest.hash)
	}
}

func (w *world) pass(ms int64) { w.model.us += ms * 1000 }

// passTo lets time pass until about when something ends.
func (w *world) passTo() {
	var ends []int64
	for _, owner := range w.holders() {
		ends = append(ends, w.model.holders[owner].deadline)
	}
	for _, owner := range slices.Sorted(maps.Keys(w.model.tombs)) {
		ends = append(ends, w.model.tombs[owner])
	}
	ends = slices.DeleteFunc(ends, func(end int64) bool { return end <= w.model.now()+1 })
	w.pass(pick(w, "end", ends) - w.model.now() + rapid.Int64Range(-1, 1).Draw(w.rt, "about"))
}

// send runs a script in both worlds and compares. It returns who became a holder.
func (w *world) send(r request) (granted []string) {
	w.t.Helper()
	const scriptTime = 50 // µs: no two scripts run at the same time
	w.model.us += scriptTime
	w.sent = append(w.sent, r)
	w.expire()
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
