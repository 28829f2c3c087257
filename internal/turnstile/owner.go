package turnstile

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/hold"
	"github.com/holdfast-go/holdfast/internal/scripts"
	"github.com/holdfast-go/holdfast/internal/tenure"
	"github.com/holdfast-go/holdfast/watchdog"
)

// phase is how far an owner has come.
type phase uint8

const (
	asking  phase = iota // no answer yet
	waiting              // has a ticket in the server's queue
	holding              // has its tenure
	ended                // released, lost, cancelled or refused: whatever still comes for it is undone
)

// owner is one identity at the server: of one acquisition, from its first request until nothing of it is left.
type owner struct {
	turn  *turnstile
	req   *Request
	n     uint64
	freed atomic.Bool // a release of it ended the hold
	try   bool        // one attempt, no ticket

	// Guarded by the turnstile's mutex.
	phase    phase
	known    bool           // the server knows it, or may
	missed   bool           // the attempt before got no answer
	undoing  bool           // an undo is at work
	again    bool           // an answer came after the undo had sent its release: release once more
	held     bool           // it has its tenure, or had it
	watched  bool           // the watchdog has it
	attempts int32          // in all, the release that names it as next included
	inflight int32          // those without an answer so far
	waiter   *waiter        // until it holds or has ended
	unknown  tenure.Instant // when the latest attempt was sent that failed and may have run, or may still
	settled  chan struct{}  // closed when inflight drops to 0 after the end
	tenure   tenure.Tenure  // once it holds
	share    *tenure.Share  // of the first hold of its session: the latest one's
	first    tenure.Share
	next     *owner        // that holds, too, of the same turnstile
	claim    time.Duration // of a pushed grant
	passing  passing       // the tenure on, inside the client
	watch    watchdog.Watch
	stack    *[]uintptr // where the hold was taken, for tests

	unguarded atomic.Pointer[hold.Hold] // the latest hold, until the guard looks after it
}

func (o *owner) hall() *Hall { return o.turn.hall }

// Identity implements tenure.Tenant.
func (o *owner) Identity() tenure.Owner { return tenure.Owner{Client: o.turn.hall.cfg.Client, N: o.n} }

// Lock implements tenure.Tenant.
func (o *owner) Lock() (name, key string) { return o.req.Name, o.req.Key }

// tenancy returns its tenure, nil if it never held.
func (o *owner) tenancy() *tenure.Tenure {
	o.turn.mu.Lock()
	defer o.turn.mu.Unlock()
	if !o.held {
		return nil
	}
	return &o.tenure
}

// unwatch has the watchdog forget it, for good.
func (o *owner) unwatch() { o.hall().cfg.Watchdog.Remove(&o.watch) }

// unanswered reports whether a request of o may still run: then its end leaves a tombstone (c6, c7).
func (o *owner) unanswered() bool {
	return o.inflight > 0 || !o.unknown.IsZero() && o.unknown.Since() < tomb
}

// tomb is how long the server must refuse later requests of o once it has ended.
func (o *owner) tomb() time.Duration {
	if o.unanswered() {
		return tomb
	}
	return 0
}

// acquire is the request that tries, waits and polls.
func (o *owner) acquire() scripts.Acquire {
	a := scripts.Acquire{
		Key: o.req.Key, Owner: o.Identity(), Weight: o.req.Weight, Capacity: o.req.Capacity, Depth: 1,
		Lease: o.req.Settings.Lease, Window: o.hall().cfg.Window, Claim: o.hall().cfg.Claim,
		Acks: acks(&o.req.Settings.Terms),
	}
	if o.try {
		a.Window = 0
	}
	return a
}

// request is acquire for one in line.
func (o *owner) request() scripts.Acquire {
	a, line := o.acquire(), &o.turn.line
	a.Busy = o.turn.holder != nil || line.first != line.last
	return a
}

// acks is what the terms ask of the replicas.
func acks(t *tenure.Terms) scripts.Acks {
	return scripts.Acks{Replicas: t.Replicas, Timeout: t.ReplicaTimeout}
}

// answered takes in the answer to an attempt that was sent at the given instant. It reports whether the answer is
// a sign that the others in line may have lost their tickets, too (c5).
func (o *owner) answered(sent tenure.Instant, a scripts.Acquired, f *scripts.Failure) (suspicious bool) {
	o.arrived()
	missed := o.missed
	if o.missed = f != nil; f != nil {
		o.failed(sent, f)
		return false
	}
	o.known = o.known || a.Status == scripts.Held || a.Status == scripts.Waiting
	if o.phase == ended {
		if a.Status == scripts.Held || a.Status == scripts.Waiting {
			o.undo() // c7: an answer for an ended owner
		}
		return false
	}
	t := o.turn
	if t.known != nil {
		t.known.failures, t.known.failure = 0, nil
	}
	switch a.Status {
	case scripts.Held:
		unpushed := o.phase == waiting && !o.waiter.voided
		suspicious = missed || unpushed
		if in := o.hall().cfg.Inbox; in != nil && unpushed && a.Earlier && in.Up() {
			in.Missed()
		}
		lease, how := o.req.Settings.Lease, hold.Polled
		if o.phase == asking && !missed {
			how = hold.AtOnce
		}
		o.granted(a.Token, sent.Add(lease-tenure.Margin(lease)), 0, how)
		o.passing.told(a.Waiting)
	case scripts.Waiting:
		if o.phase == waiting && o.waiter.ticket == a.Ticket {
			if a.Seq == t.lore().bases.last() {
				t.stalled(a.Seq)
			}
		} else {
			o.numbered(a.Ticket, sent)
		}
		t.lore().bases.add(sent, a.Seq)
		if o.phase == holding {
			return false // an older answer, overtaken by the push
		}
		suspicious = missed || o.phase == waiting && o.waiter.ticket != a.Ticket
		o.queued(a.Ticket)
		if a.More && o.phase == waiting { // c12
			t.sendOne(o)
		}
		if a.Head && a.ExpIn > 0 {
			t.pollBefore(a.ExpIn + time.Millisecond)
		}
	case scripts.Refused:
		if o.phase == holding { // freed by force, and the poll told before the message did
			o.tenure.End(errForced)
			return false
		}
		o.replace() // c9: goes on under a new name
	default: // busy: only a try is told so
		if o.phase == holding {
			return false
		}
		t.reject(o, tenure.ErrNotAcquired)
	}
	return suspicious
}

// replace has o's waiter go on under a new owner.
func (o *owner) replace() {
	if o.try {
		o.turn.reject(o, fmt.Errorf("%w: the answer came too late", tenure.ErrUnavailable))
		return
	}
	w := o.waiter
	o.turn.part(o)
	o.turn.ask(w)
}

// departed counts an attempt as on its way.
func (o *owner) departed(now tenure.Instant) {
	if w := o.waiter; w != nil {
		w.polled = now
		if o.inflight == 0 {
			w.silent = now
		}
	}
	o.inflight++
	o.attempts++
}

// arrived counts an attempt as no longer on its way.
func (o *owner) arrived() {
	o.inflight--
	if o.inflight == 0 && o.settled != nil {
		close(o.settled)
		o.settled = nil
	}
}

// failed takes in that an attempt got no answer.
func (o *owner) failed(sent tenure.Instant, f *scripts.Failure) {
	if f.Unknown && sent.After(o.unknown) {
		o.unknown, o.known = sent, true
	}
	if o.phase == ended || o.phase == holding {
		return
	}
	known := o.turn.lore()
	known.failure, known.failedAt = f, tenure.Lately()
	if f.Transient && !o.try {
		if o.phase == asking {
			o.turn.retryLater()
		}
		return
	}
	o.turn.reject(o, f)
	o.turn.advance()
}

// queued puts o where its ticket belongs.
func (o *owner) queued(ticket int64) {
	w := o.waiter
	if o.phase == waiting && w.ticket == ticket {
		return
	}
	o.phase, w.ticket = waiting, ticket
	o.turn.line.sort(w)
	o.turn.pollBefore(o.hall().poll())
	if in := o.hall().cfg.Inbox; in != nil {
		in.Open()
	}
	if g := w.early; g != nil {
		w.early = nil
		o.pushed(*g)
	}
}

// pushed takes in a grant (c4). It is good without a round trip: an answer of this client whose last token is smaller
// than the push's ran before the grant, so the tenure began after that answer was sent. Without such an answer, or
// past its deadline, the push is void, and o asks again.
func (o *owner) pushed(g grant) {
	switch o.phase {
	case asking:
		o.waiter.early = &g
		return
	case waiting:
	default:
		return // a duplicate, or too late
	}
	sent, ok := o.turn.lore().bases.before(g.token)
	deadline := sent.Add(g.claim - tenure.Margin(g.claim))
	if o.req.Settings.Fixed {
		deadline = tenure.Earlier(deadline, tenure.Lately().Add(o.req.Settings.Lease))
	}
	// A grant is another client's write: where replicas must acknowledge, only an answer of our own counts.
	if !ok || deadline.Until() <= 0 || o.req.Settings.Replicas > 0 {
		o.waiter.voided = true
		o.turn.sendOne(o)
		return
	}
	o.granted(g.token, deadline, g.claim, hold.Pushed)
	o.passing.told(g.waiting)
}

// granted makes o the holder of a tenure. claim is 0 when the server gave the full lease.
func (o *owner) granted(token int64, deadline tenure.Instant, claim time.Duration, how hold.How) {
	t := o.turn
	if o.phase == holding {
		switch tenant := &o.tenure; {
		case tenant.Token() != token: // c3: the first one is over
			tenant.End(fmt.Errorf("%w: the server gave it anew", tenure.ErrLost))
		case claim == 0 && !o.req.Settings.Fixed:
			tenant.ProlongUntil(deadline)
		}
		return
	}
	if deadline.Sub(tenure.Lately()) <= 0 { // the answer took longer than the lease: this tenure is over
		o.unknown = tenure.Lately() // let it be undone like one whose answer was lost
		o.replace()
		return
	}
	w := o.waiter
	t.line.remove(&w.place)
	if t.candidate == o {
		t.candidate = nil
	}
	o.phase, o.claim, o.known, o.held, o.waiter = holding, claim, true, true, nil
	t.displace(o, token)
	now := tenure.Lately()
	o.tenure.Init(o, &o.req.Settings.Terms, token, now, deadline)
	o.share = &o.first
	_ = o.tenure.Begin(&o.first, o.req.Weight) // a new tenure lasts
	o.passing.begin(now)
	o.next, t.holder = t.holder, o
	w.give(o, &o.first, how)
}

// Ended implements tenure.Tenant.
func (o *owner) Ended(cause error) {
	if see := o.hall().cfg.Observer; see != nil && see.Lost != nil && errors.Is(cause, tenure.ErrLost) {
		see.Lost(o.req.lock(), o.tenure.Since().Since(), cause)
	}
	o.hall().crew.Go(o.lost)
}
