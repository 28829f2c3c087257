// Package watchdog keeps tenures alive: it renews their leases in batches and ends those whose deadline has
// come. One goroutine minds them all, however many there are; a batch on its way has one of its own.
//
// The package is there to be read; its API is outside the compatibility promise.
package watchdog

import (
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

// Watch is one tenure under the watchdog's eyes. The zero value is none yet.
type Watch struct {
	tenure *tenure.Tenure

	// Guarded by the watchdog's mutex.
	renewAt  tenure.Instant // when an attempt is due
	index    int32          // in the queue, counted from 1; or outside, or removed
	failures int16          // in a row
	set      bool           // it has its full lease: a fixed one is only looked after from then on
	again    bool           // an attempt was made and not answered yet, or failed
}

const (
	outside = 0
	removed = -1 // it must not come back
)

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

// Add begins to mind by v a tenure that has its full lease. If the answer that gave it took so long that less than half
// of it is left, it is renewed at once.
func (w *Watchdog) Add(v *Watch, t *tenure.Tenure) {
	renewAt := t.Since().Add(pause(t.Terms.Lease))
	if now := tenure.Lately(); !t.Terms.Fixed && t.Deadline().Sub(now) < t.Terms.Lease/2 {
		renewAt = now
	}
	w.add(v, t, renewAt, true)
}

// AddClaim begins to mind a tenure that has only the short claim of a pushed grant: its first renewal, which
// sets the lease, goes out after a third of the claim, at once if less than half of it is left, or if the lease
// is fixed: that counts from the grant.
func (w *Watchdog) AddClaim(v *Watch, t *tenure.Tenure, claim time.Duration) {
	renewAt := tenure.Lately()
	if !t.Terms.Fixed && t.Deadline().Sub(renewAt) >= claim/2 {
		renewAt = renewAt.Add(claim / 3)
	}
	w.add(v, t, renewAt, false)
}

func (w *Watchdog) add(v *Watch, t *tenure.Tenure, renewAt tenure.Instant, set bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || v.index == removed {
		return
	}
	v.tenure, v.renewAt, v.set = t, renewAt, set
	if !w.running {
		w.running = true
		w.wg.Go(w.run)
	}
	w.placeLocked(v)
}

// Remove stops minding a tenure, for good. A renewal on its way may still arrive; it changes nothing.
func (w *Watchdog) Remove(v *Watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watches.remove(v)
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
	at := tenure.Earlier(v.tenure.Deadline(), v.renewAt)
	w.watches.put(v, at)
	if w.watches[0].watch == v && w.asleep.After(at) {
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
		v, at := w.watches[0].watch, w.watches[0].at
		early := v.tenure.Terms.Lease / gather
		if v.again {
			early = 0
		}
		if next = at.Sub(now); next > early {
			break
		}
		switch {
		case !v.tenure.Deadline().After(now):
			w.watches.remove(v)
			over = append(over, v.tenure)
		case v.renewAt.Sub(now) <= early:
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
		_, key := v.tenure.Tenant().Lock()
		node := w.renewer.Node(w.ctx, key)
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
		rs[i] = scripts.RenewalOf(v.tenure)
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
		name, _ := t.Tenant().Lock()
		w.warn("holdfast: renewal failed", "name", name, "owner", t.Tenant().Identity(), "deadline in", t.Deadline().Until(), "error", f)
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
	case v.index <= outside:
		return
	case f != nil:
		v.renewAt = now.Add(soon(t, now, backoff(int(v.failures), t.Terms.Lease)))
		v.failures = min(v.failures+1, 100)
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
