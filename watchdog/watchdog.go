// Package watchdog keeps tenures alive: it renews their leases in batches and ends those whose deadline has
// come. One goroutine minds them all, however many there are; a batch on its way has one of its own.
//
// The package is there to be read; its API is outside the compatibility promise.
package watchdog

import (
	"container/heap"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/scripts"
	"github.com/holdfast-go/holdfast/internal/tenure"
)

// maxBatch is how many renewals leave in one write: more gain nothing and delay the rest.
const maxBatch = 100

// gather is the part of a lease by which a renewal may leave early to share a write with others: with many holds
// there is always one due.
const gather = 300

// nap is how long the watchdog sleeps at most while it minds anything.
const nap = time.Second

// Renewer sends renewals, one attempt for each.
type Renewer interface {
	RenewAll(ctx context.Context, rs []scripts.Renew) ([]scripts.Renewed, []*scripts.Failure)
	// Node names the server that a key lives on: nodes are renewed independently.
	Node(ctx context.Context, key string) string
}

// Watchdog renews tenures. Safe for concurrent use.
type Watchdog struct {
	renewer Renewer
	warn    func(msg string, attrs ...any)
	told    func(t *tenure.Tenure, err error)
	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	wake    chan struct{} // of capacity 1: something is due sooner than run sleeps
	wg      sync.WaitGroup

	mu      sync.Mutex // guards what follows, and every watch
	watches queue
	asleep  tenure.Instant // until when run sleeps, if nobody wakes it
	running bool
	closed  bool
}

// Watch is one tenure under the watchdog's eyes.
type Watch struct {
	tenure *tenure.Tenure
	key    string

	// Guarded by the watchdog's mutex.
	index    int            // in the queue, -1 outside
	at       tenure.Instant // when to look at it: the next renewal or the deadline, whichever is first
	renewAt  tenure.Instant // zero: not to be renewed
	failures int            // in a row
	set      bool           // it has its full lease: a fixed one is only looked after from then on
	again    bool           // an attempt was made and not answered yet, or failed
}

// New returns a watchdog. It starts its goroutine with the first tenure. warn logs, and limits how often. told is called with
// the outcome of every renewal, if it is set.
func New(r Renewer, warn func(msg string, attrs ...any), told func(t *tenure.Tenure, err error)) *Watchdog {
	if warn == nil {
		warn = slog.Warn
	}
	if told == nil {
		told = func(*tenure.Tenure, error) {}
	}
	w := &Watchdog{renewer: r, warn: warn, told: told, wake: make(chan struct{}, 1)}
	w.ctx, w.stop = context.WithCancel(context.Background())
	return w
}

// Add begins to mind a tenure that has its full lease. If the answer that gave it took so long that less than half
// of it is left, it is renewed at once.
func (w *Watchdog) Add(t *tenure.Tenure, key string) *Watch {
	v := &Watch{tenure: t, key: key, index: -1, set: true}
	switch {
	case !t.Terms.Fixed && t.Deadline().Sub(tenure.Lately()) < t.Terms.Lease/2:
		v.renewAt = tenure.Lately()
	default:
		v.renewAt = t.Since().Add(pause(t.Terms.Lease))
	}
	w.add(v)
	return v
}

// AddClaim begins to mind a tenure that has only the short claim of a pushed grant: its first renewal, which
// sets the lease, goes out after a third of the claim, at once if less than half of it is left, or if the lease
// is fixed: that counts from the grant.
func (w *Watchdog) AddClaim(t *tenure.Tenure, key string, claim time.Duration) *Watch {
	v := &Watch{tenure: t, key: key, index: -1, renewAt: tenure.Lately()}
	if !t.Terms.Fixed && t.Deadline().Sub(v.renewAt) >= claim/2 {
		v.renewAt = v.renewAt.Add(claim / 3)
	}
	w.add(v)
	return v
}

func (w *Watchdog) add(v *Watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	if !w.running {
		w.running = true
		w.wg.Go(w.run)
	}
	w.placeLocked(v)
}

// Remove stops minding a tenure. A renewal on its way may still arrive; it changes nothing.
func (w *Watchdog) Remove(v *Watch) {
	if v == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	v.renewAt = tenure.Instant{}
	if v.index >= 0 {
		heap.Remove(&w.watches, v.index)
	}
	v.index = removed
}

// Len returns how many tenures are minded.
func (w *Watchdog) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.watches)
}

// Close stops minding and renewing, and waits for the goroutines, at most until ctx ends.
func (w *Watchdog) Close(ctx context.Context) {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.stop()
	done := make(chan struct{})
	go func() { w.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// placeLocked puts v where its next instant belongs.
func (w *Watchdog) placeLocked(v *Watch) {
	if v.index == removed {
		return
	}
	v.at = v.tenure.Deadline()
	if !v.renewAt.IsZero() {
		v.at = tenure.Earlier(v.at, v.renewAt)
	}
	if v.index < 0 {
		heap.Push(&w.watches, v)
	} else {
		w.watches[v.index].at = v.at
		heap.Fix(&w.watches, v.index)
	}
	if v.index == 0 && w.asleep.After(v.at) {
		select {
		case w.wake <- struct{}{}:
		default: // run has yet to look
		}
	}
}

// run minds the tenures until Close.
func (w *Watchdog) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(w.look())
		select {
		case <-w.ctx.Done():
			return
		case <-timer.C:
		case <-w.wake:
		}
	}
}

// look does what is due and returns how long there is nothing to do.
func (w *Watchdog) look() time.Duration {
	var due []*Watch
	var over []*tenure.Tenure
	now, next := tenure.Now(), time.Hour
	w.mu.Lock()
	w.asleep = tenure.Instant{} // what is placed meanwhile is seen below
minding:
	for len(w.watches) > 0 {
		v := w.watches[0].watch
		early := v.tenure.Terms.Lease / gather
		if v.again {
			early = 0
		}
		if next = v.at.Sub(now); next > early {
			break
		}
		switch {
		case !v.tenure.Deadline().After(now):
			heap.Pop(&w.watches)
			over = append(over, v.tenure)
		case !v.renewAt.IsZero() && v.renewAt.Sub(now) <= early:
			due = append(due, v)
			// An attempt that gives no answer in this time is tried again beside it.
			v.renewAt, v.again = now.Add(soon(v.tenure, now, v.tenure.Terms.Lease/10)), true
			w.placeLocked(v)
		case next <= 0: // prolonged meanwhile
			w.placeLocked(v)
		default: // its deadline is near
			break minding
		}
		next = time.Hour
	}
	if len(w.watches) > 0 && tenure.SeesSuspends() {
		next = min(next, nap) // the timer stands still while the machine is suspended: look again soon afterwards
	}
	until := now.Add(next)
	w.asleep = until
	w.mu.Unlock()
	for _, t := range over {
		t.Alive() // ends it; outside the lock, for that calls back
	}
	w.send(due)
	return max(until.Until(), 0)
}

// send renews what is due, each node in batches of its own so that a slow one delays only itself.
func (w *Watchdog) send(due []*Watch) {
	if len(due) == 0 {
		return
	}
	byNode := make(map[string][]*Watch)
	for _, v := range due {
		node := w.renewer.Node(w.ctx, v.key)
		if terms := v.tenure.Terms; terms.Replicas > 0 { // waiting for replicas must not delay the others
			node += " " + terms.ReplicaTimeout.String()
		}
		byNode[node] = append(byNode[node], v)
	}
	for _, vs := range byNode {
		for len(vs) > 0 {
			batch := vs[:min(maxBatch, len(vs))]
			vs = vs[len(batch):]
			w.wg.Go(func() { w.renew(batch) })
		}
	}
}

// renew makes one attempt for each tenure of a batch.
func (w *Watchdog) renew(batch []*Watch) {
	rs := make([]scripts.Renew, len(batch))
	for i, v := range batch {
		t := v.tenure
		depth, weight, base := t.Standing()
		rs[i] = scripts.Renew{
			Key: v.key, Owner: t.Owner, Lease: t.Terms.Lease, Token: t.Token(), Base: base, Weight: weight, Depth: depth,
			Acks: scripts.Acks{Replicas: t.Terms.Replicas, Timeout: t.Terms.ReplicaTimeout},
		}
		if w.looksOnly(v) {
			rs[i].Lease = look // the server never shortens
		}
	}
	sent := tenure.Lately()
	answers, failures := w.renewer.RenewAll(w.ctx, rs)
	if w.ctx.Err() != nil {
		return
	}
	now := tenure.Now()
	for i, v := range batch {
		w.answered(v, sent, now, answers[i], failures[i])
	}
}

// look is the lease that is asked for a hold that must only be looked after.
const look = 100 * time.Millisecond

// looksOnly reports whether v has a fixed lease: it is not renewed, but its holder must learn of a loss all the same.
func (w *Watchdog) looksOnly(v *Watch) bool {
	if !v.tenure.Terms.Fixed {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return v.set
}

// answered settles one renewal, which was sent at one instant and answered before the other.
func (w *Watchdog) answered(v *Watch, sent, now tenure.Instant, a scripts.Renewed, f *scripts.Failure) {
	t := v.tenure
	switch {
	case f != nil:
		t.Failed(f)
		w.told(t, f)
		w.warn("holdfast: renewal failed", "name", t.Name, "owner", t.Owner, "deadline in", t.Deadline().Until(), "error", f)
	case !a.Held:
		w.Remove(v)
		t.End(fmt.Errorf("%w: the server no longer knows it", tenure.ErrLost))
		return
	case a.Token != t.Token():
		w.Remove(v)
		t.End(fmt.Errorf("%w: the server knows another tenure", tenure.ErrLost))
		return
	case w.looksOnly(v):
	case !t.Prolong(sent, t.Terms.Lease, a.Now, now):
		return
	default:
		w.told(t, nil)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case v.index == removed || v.index < 0:
		return
	case f != nil:
		v.renewAt = now.Add(soon(t, now, backoff(v.failures, t.Terms.Lease)))
		v.failures++
	default:
		v.renewAt, v.failures, v.set, v.again = sent.Add(pause(t.Terms.Lease)), 0, true, false
	}
	w.placeLocked(v)
}

// soon shortens a pause between two attempts so that a few more fit in before the deadline: a claim is short.
func soon(t *tenure.Tenure, now tenure.Instant, d time.Duration) time.Duration {
	return min(d, max(t.Deadline().Sub(now)/5, 10*time.Millisecond))
}

// pause is the time between two renewals: a third of the lease, jittered only earlier.
func pause(lease time.Duration) time.Duration {
	return time.Duration(float64(lease/3) * (0.9 + 0.1*rand.Float64()))
}

// backoff is the time until a failed renewal is tried again: none at first, then from 50 ms to a thirtieth of the lease.
func backoff(failures int, lease time.Duration) time.Duration {
	if failures == 0 {
		return 0
	}
	return min(50*time.Millisecond<<min(failures-1, 10), max(lease/30, 10*time.Millisecond))
}

const removed = -2 // index of a watch that must not come back

// queue is a heap of watches, the earliest first.
type queue []place

// place has a copy of its watch's instant: with many holds the watches themselves are in no cache.
type place struct {
	at    tenure.Instant
	watch *Watch
}

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[j].at.After(q[i].at) }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].watch.index, q[j].watch.index = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	v := x.(*Watch)
	v.index = len(*q)
	*q = append(*q, place{v.at, v})
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	old := *q
	v := old[len(old)-1].watch
	old[len(old)-1] = place{}
	*q = old[:len(old)-1]
	v.index = -1
	return v
}
