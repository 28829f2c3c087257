package turnstile

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/hold"
	"github.com/holdfast-go/holdfast/internal/scripts"
	"github.com/holdfast-go/holdfast/internal/tenure"
)

// turnstile is one client's record of a name: who waits for it here, and who holds it here. It is used again for
// another name once nobody uses it: an owner that has ended touches nothing of it but the mutex.
type turnstile struct {
	hall  *Hall
	key   string
	users atomic.Int64 // callers inside and owners; the last one out closes the turnstile

	mu sync.Mutex // guards what follows, the owners of this turnstile and their waiters
	turns
}

// turns is what a turnstile knows.
type turns struct {
	line   line           // owners that ask or wait
	holder *owner         // that got its tenure last; the others that hold follow
	askAt  tenure.Instant // when the owners without an answer ask again
	known  *lore          // made when first asked for

	// One ticket per client (Request.OneTicket): the candidate has it, the others wait here in local.
	candidate *owner
	local     chain[*waiter]
	usual     time.Duration // how long a hold lasts, smoothed
}

// lore is what is known of a name for which somebody had to wait, or which could not be had at once.
type lore struct {
	bases    bases
	pollAt   tenure.Instant // when the owner with the lowest ticket asks again
	timer    *time.Timer    // fires then, or at askAt if that is earlier
	armed    tenure.Instant // when it does; zero: not set
	failures int            // attempts that failed in a row
	failure  error          // why the last attempt failed; nil once one was answered
	failedAt tenure.Instant // when that was
	failing  tenure.Instant // until when nothing is tried anew after a failure
	sought   int64          // the last token at which ghosts were sought
	top      int64          // the highest ticket told by an answer since the server last went back
	topAt    tenure.Instant // when it was told
}

func (t *turnstile) lore() *lore {
	if t.known == nil {
		t.known = new(lore)
	}
	return t.known
}

// forget returns what of l can be used again.
func (l *lore) forget() *lore {
	if l == nil {
		return nil
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	*l = lore{timer: l.timer, bases: l.bases[:0]}
	return l
}

// holders lists the owners that hold, the first one first.
func (t *turnstile) holders() []*owner {
	var os []*owner
	for o := t.holder; o != nil; o = o.next {
		os = append(os, o)
	}
	slices.Reverse(os)
	return os
}

// waiter is one blocked call.
type waiter struct {
	req   *Request
	try   bool
	ready chan error  // of capacity 1: nil, and owner holds; or why not
	late  *time.Timer // has its first request looked after, if that takes long; nil otherwise

	// Guarded by the turnstile's mutex.
	owner *owner        // whose grant it is waiting for; nil while in local
	share *tenure.Share // what it was given
	how   hold.How      // and how
	place link[*waiter] // in local; or in the line, until its owner holds or has ended
	asked
}

// asked is what a waiter's owner has asked so far, and was told.
type asked struct {
	ticket int64          // while waiting
	polled tenure.Instant // when the latest attempt was handed over
	silent tenure.Instant // since when there has always been an attempt without an answer
	early  *grant         // a push that overtook the answer that its asker still awaits
	voided bool           // a push told of a grant, but could not be dated
}

func (h *Hall) newWaiter(r *Request, try bool) *waiter {
	w := h.waiters.Get().(*waiter)
	w.req, w.try = r, try
	return w
}

// forgetWaiter is for one whose call is over: nothing refers to it any more.
func (h *Hall) forgetWaiter(w *waiter) {
	*w = waiter{ready: w.ready}
	h.waiters.Put(w)
}

// lookAfter has w's late fire in a while. Whoever waits for long has no timer.
func (h *Hall) lookAfter(w *waiter) {
	w.late = h.timers.Get().(*time.Timer)
	w.late.Reset(patience)
}

// leaveAlone ends lookAfter.
func (h *Hall) leaveAlone(w *waiter) {
	if w.late != nil {
		w.late.Stop()
		h.timers.Put(w.late)
		w.late = nil
	}
}

// fail tells the caller that nothing will come. The owner has ended, so nothing else is sent to ready.
func (w *waiter) fail(err error) { w.ready <- err }

// drain takes back what nobody will read any more.
func (w *waiter) drain() {
	select {
	case err := <-w.ready:
		_ = err
	default:
	}
}

// give tells the caller what it holds.
func (w *waiter) give(o *owner, s *tenure.Share, how hold.How) {
	w.owner, w.share, w.how = o, s, how
	w.ready <- nil
}

// bases date the grants that are pushed (c2): this client's latest answers on the name, each with the instant at which
// it was sent and the last token that the server had given when it ran. Of answers with the same last token the
// one sent last counts. The latest few are kept, in the order of sending: pushes and answers come over different
// connections, and an answer that ran after a grant often overtakes its push.
type bases []base

type base struct {
	sent tenure.Instant
	seq  int64
}

const maxBases = 8

func (b *bases) add(sent tenure.Instant, seq int64) {
	for i := range *b {
		if old := &(*b)[i]; old.seq == seq {
			if sent.After(old.sent) {
				old.sent = sent
			}
			return
		}
	}
	*b = append(*b, base{sent, seq})
	slices.SortFunc(*b, func(x, y base) int { return int(x.sent.Sub(y.sent)) })
	if len(*b) > maxBases {
		*b = slices.Delete(*b, 0, 1)
	}
}

// last returns the last token of the answer sent last.
func (b bases) last() int64 {
	if len(b) == 0 {
		return 0
	}
	return b[len(b)-1].seq
}

// before returns when the latest answer was sent that ran before the grant with that token.
func (b bases) before(token int64) (sent tenure.Instant, ok bool) {
	for _, x := range slices.Backward(b) {
		if x.seq < token {
			return x.sent, true
		}
	}
	return sent, false
}

// line is the waiters whose owners ask or wait: those with a ticket in the order of the tickets, then those without
// an answer in the order of their arrival.
type line struct{ chain[*waiter] }

func (l *line) head() *owner {
	if l.first == nil {
		return nil
	}
	return l.first.value.owner
}

// add puts w, whose owner has no ticket yet, at the end.
func (l *line) add(w *waiter) { l.push(&w.place, w) }

func (l *line) tail() *owner {
	if l.last == nil {
		return nil
	}
	return l.last.value.owner
}

// sort moves w, whose owner has just got its ticket, to where that belongs. Tickets come nearly in order.
func (l *line) sort(w *waiter) {
	l.remove(&w.place)
	at := l.last
	for at != nil && (at.value.owner.phase != waiting || at.value.ticket >= w.ticket) {
		at = at.prev
	}
	l.insert(&w.place, at)
}

// unanswered lists the owners that have no ticket yet, in order.
func (l *line) unanswered() []*owner {
	var os []*owner
	for at := l.last; at != nil && at.value.owner.phase == asking; at = at.prev {
		os = append(os, at.value.owner)
	}
	slices.Reverse(os)
	return os
}

// all lists the owners in order.
func (l *line) all() []*owner {
	var os []*owner
	for at := l.first; at != nil; at = at.next {
		os = append(os, at.value.owner)
	}
	return os
}

// ask starts a new owner for w and sends its first request.
func (t *turnstile) ask(w *waiter) { t.sendOne(t.start(w)) }

// start makes a new owner for w that has asked nothing yet.
func (t *turnstile) start(w *waiter) *owner {
	o := t.hall.newOwner(t, w)
	if w.try {
		return o // it never waits
	}
	t.line.add(w)
	if w.req.OneTicket {
		t.candidate = o
	}
	return o
}

// advance lets the next local waiter ask, if the client's one ticket is free. While this client holds the name
// its release does that, in the same call.
func (t *turnstile) advance() {
	if t.candidate != nil || t.holder != nil {
		return
	}
	if w := t.nextLocal(); w != nil {
		t.ask(w)
	}
}

// nextLocal takes the first waiter out of local.
func (t *turnstile) nextLocal() *waiter {
	if t.local.empty() || t.hall.isClosing() {
		return nil
	}
	w := t.local.first.value
	t.local.remove(&w.place)
	return w
}

// part ends an owner that got nothing, and undoes what it may have left at the server.
func (t *turnstile) part(o *owner) {
	had := o.phase == waiting || o.unanswered()
	o.end()
	if had {
		o.undo()
	} else {
		t.hall.forget(o)
	}
}

// reject ends an owner that got nothing and tells its waiter why.
func (t *turnstile) reject(o *owner, why error) {
	w := o.waiter
	t.part(o)
	w.fail(why)
}

// end takes o out of everything. What it left at the server is the caller's business.
func (o *owner) end() {
	t := o.turn
	if w := o.waiter; w != nil {
		t.line.remove(&w.place)
		o.waiter = nil
	}
	if t.candidate == o {
		t.candidate = nil
	}
	for at := &t.holder; *at != nil; at = &(*at).next {
		if *at == o {
			*at, o.next = o.next, nil
			break
		}
	}
	o.phase = ended
}

// displace ends the holds of this client that the server cannot have kept when it gave o its tenure: there
// was no room for both. The server lost data, or time ran ahead; whoever lost is told before o goes on.
func (t *turnstile) displace(o *owner, token int64) {
	for _, other := range t.holders() {
		_, weight := other.tenure.Level()
		if other.tenure.Token() < token && weight+o.req.Weight > o.req.Capacity {
			other.tenure.End(fmt.Errorf("%w: the server gave the name to another", tenure.ErrLost))
		}
	}
}

// sendOne makes an attempt for o, without waiting for it.
func (t *turnstile) sendOne(o *owner) {
	if o.req.Settings.Replicas > 0 {
		t.send(o)
		return
	}
	t.dispatch(o)
	t.schedule()
}

// dispatch is sendOne, but nobody looks after the attempt.
func (t *turnstile) dispatch(o *owner) {
	if h := t.hall; t.departing(o) {
		now, a := o.waiter.polled, o.request()
		h.crew.add()
		h.cfg.Caller.GoAcquire(h.ctx, &a, func(sent tenure.Instant, a scripts.Acquired, f *scripts.Failure) {
			o.turn.mu.Lock()
			if o.answered(sent, a, f) {
				o.turn.pollAll(now)
			}
			o.turn.mu.Unlock()
			h.crew.done()
		})
	}
}

// departing notes that an attempt of o sets out, if one may.
func (t *turnstile) departing(o *owner) bool {
	if o.inflight >= maxInflight || t.hall.ctx.Err() != nil {
		return false
	}
	now := tenure.Now() // not Lately: what is reckoned from here must know of a suspend
	if now.After(t.askAt) {
		t.askAt = now.Add(jitter(t.hall.poll()))
	}
	o.departed(now)
	return true
}

// send makes an attempt for each owner, in this order, without waiting for it.
func (t *turnstile) send(os ...*owner) {
	now := tenure.Lately() // before they set out: a suspicious answer must not have all of these ask again, and again
	os = slices.DeleteFunc(os, func(o *owner) bool { return !t.departing(o) })
	if len(os) == 0 {
		return
	}
	requests := make([]scripts.Acquire, len(os))
	for i, o := range os {
		requests[i] = o.request()
	}
	t.schedule()
	t.hall.crew.Go(func() { t.attempt(os, requests, now) })
}

// attempt makes the attempts and takes in the answers. stamp is when they were handed over.
func (t *turnstile) attempt(os []*owner, requests []scripts.Acquire, stamp tenure.Instant) {
	suspicious := false
	for len(os) > 0 {
		n := min(maxBatch, len(os))
		// Whoever needs acknowledgements waits for them alone.
		if i := slices.IndexFunc(os[:n], func(o *owner) bool { return o.req.Settings.Replicas > 0 }); i >= 0 {
			n = max(i, 1)
		}
		sent := tenure.Now() // before anything is sent: deadlines count from here
		var as []scripts.Acquired
		var fs []*scripts.Failure
		if n == 1 {
			a, f := t.hall.cfg.Caller.Acquire(t.hall.ctx, requests[0])
			as, fs = []scripts.Acquired{a}, []*scripts.Failure{f}
		} else {
			as, fs = t.hall.cfg.Caller.AcquireAll(t.hall.ctx, requests[:n])
		}
		t.mu.Lock()
		for i, o := range os[:n] {
			suspicious = o.answered(sent, as[i], fs[i]) || suspicious
		}
		if os, requests = os[n:], requests[n:]; len(os) == 0 && suspicious {
			t.pollAll(stamp)
		}
		t.mu.Unlock()
	}
}

// pollAll has everybody in line who has not asked since the given instant ask again, oldest first.
func (t *turnstile) pollAll(since tenure.Instant) {
	var os []*owner
	for _, o := range t.line.all() {
		if since.After(o.waiter.polled) {
			os = append(os, o)
		}
	}
	t.sendAll(os)
}

// sendAll is send, which a single owner does not need.
func (t *turnstile) sendAll(os []*owner) {
	if len(os) == 1 {
		t.sendOne(os[0])
		return
	}
	t.send(os...)
}

// pollFirst has the lowest ticket ask at once.
func (t *turnstile) pollFirst() {
	if first := t.line.head(); first != nil && first.phase == waiting && first.inflight == 0 {
		t.sendOne(first)
	}
}

// pollBefore sees to it that the lowest ticket asks within d.
func (t *turnstile) pollBefore(d time.Duration) {
	now, known := tenure.Lately(), t.lore()
	if at := now.Add(d); now.After(known.pollAt) || known.pollAt.After(at) {
		known.pollAt = at
		t.schedule()
	}
}

// retryLater has the owners without an answer ask again after a pause that grows while Redis fails.
func (t *turnstile) retryLater() {
	known := t.lore()
	if now := tenure.Lately(); !known.failing.After(now) { // one pause for all of them
		pause := min(minBackoff<<min(known.failures, 10), maxBackoff)
		known.failures++
		known.failing = now.Add(jitter(pause))
		t.askAt = known.failing
		t.schedule()
	}
}

// schedule sets the timer to the next thing to do.
func (t *turnstile) schedule() {
	var next tenure.Instant
	known := t.lore()
	if first := t.line.head(); first != nil && first.phase == waiting {
		next = known.pollAt
	}
	if last := t.line.tail(); last != nil && last.phase == asking && (next.IsZero() || next.After(t.askAt)) {
		next = t.askAt
	}
	if next.IsZero() || t.hall.ctx.Err() != nil {
		return
	}
	if !known.armed.IsZero() && !known.armed.After(next) {
		return // it fires sooner
	}
	known.armed = next
	d := max(next.Until(), 0)
	if known.timer == nil {
		known.timer = time.AfterFunc(d, t.fire)
	} else {
		known.timer.Reset(d)
	}
}

// fire polls what is due: the lowest ticket (c5), and whoever still has no answer.
func (t *turnstile) fire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.lore()
	known.armed = tenure.Instant{}
	if t.hall.ctx.Err() != nil {
		return
	}
	now := tenure.Lately()
	var due []*owner
	if first := t.line.head(); first != nil && first.phase == waiting && !known.pollAt.After(now) {
		known.pollAt = now.Add(jitter(t.hall.poll()))
		due = append(due, first)
	}
	if !t.askAt.After(now) {
		t.askAt = now.Add(jitter(t.hall.poll()))
		for _, o := range t.line.unanswered() {
			if o.inflight == 0 || o.waiter.polled.Since() >= t.hall.poll()/2 {
				due = append(due, o)
			}
		}
	}
	t.sendAll(due)
	t.schedule()
}

// jitter shortens d by up to a fifth, so that clients do not poll in step.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.2*rand.Float64()))
}
