package integration

import (
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"
)

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
		busy:   w.busy(),
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

// handed is the highest token that a holder handed out: above its own if the tenure was passed on locally, but in the past;
// of a name that others know of, also a little ahead, as after the server's clock went back.
func (w *world) handed(owner string) int64 {
	h := w.model.holders[owner]
	if rapid.Bool().Draw(w.rt, "passed on") {
		if w.latest.lone() != "" {
			return max(h.token, min(w.model.us, h.deadline*1000))
		}
		fast := rapid.SampledFrom([]int64{0, 0, 300_000, 3_000_000}).Draw(w.rt, "fast")
		return max(h.token, min(w.model.us+fast, h.deadline*1000))
	}
	return h.token
}

func (w *world) renew() {
	owner := pick(w, "holder", w.holders())
	h := w.model.holders[owner]
	w.send(request{
		script: renewScript, owner: owner, lease: w.asks[owner].lease, token: w.handed(owner), weight: h.weight, depth: h.depth, granted: h.token,
	})
}

func (w *world) release(owner string, next *request) {
	w.send(request{script: releaseScript, owner: owner, tomb: w.tomb(), token: w.handed(owner), busy: w.busy(), next: next})
}

func (w *world) busy() bool { return pick(w, "busy", []bool{false, false, true}) }

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
	if !own && len(granted) < w.game.limit() && !once.says(w.latest) {
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
