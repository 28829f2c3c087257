package turnstile

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/scripts"
	"github.com/holdfast-go/holdfast/internal/tenure"
)

// retirement sends the release of an owner that has ended until it is answered or nothing of the owner can be left.
// One goroutine runs it.
type retirement struct {
	pursuit[retired]
	owner    *owner
	next     *owner // queued by the first attempt, or nil
	token    int64
	deadline tenure.Instant // of the tenure
	giveUp   time.Time      // the lease must have ended by then

	sent      atomic.Int64 // attempts
	ambiguous bool         // an attempt may have run whose answer is lost
	last      *scripts.Failure
	err       error // what the owner is told in the end
}

// retired is the answer to one attempt.
type retired struct {
	released scripts.Released
	failure  *scripts.Failure
}

// retire begins to give an owner that has ended back to the server. next rides on the first attempt.
func (o *owner) retire(next *owner) *retirement {
	o.turn.mu.Lock()
	late := o.tomb() // an acquire that may still run begins its lease then
	o.turn.mu.Unlock()
	r := &retirement{
		owner: o, next: next, deadline: tenure.Lately(),
		giveUp: time.Now().Add(late + max(o.req.Settings.Lease, o.hall().cfg.Claim) + time.Second),
	}
	if t := o.tenancy(); t != nil {
		r.token, r.deadline = t.Base(), t.Deadline()
	}
	return r
}

// finish goes on to the end, in the background.
func (r *retirement) finish() {
	o := r.owner
	if !r.run(r.giveUp) && o.hall().ctx.Err() == nil {
		o.hall().log.warn("holdfast: a release found no answer, the lease ends what is left", "name", o.req.Name, "error", r.last)
		r.over()
	}
}

// run makes attempts until one settles the matter, or the instant comes or the hall ends.
func (r *retirement) run(until time.Time) bool {
	h := r.owner.hall()
	if r.start == nil {
		box := h.letterboxes.Get().(*letterbox)
		r.crew, r.start, r.answers, r.wait = h.crew, r.attempt, box.answers, box.wait
	}
	if !r.pursuit.run(h.ctx, until, r.judge) {
		return false
	}
	if r.flying == 0 { // else an answer may yet come
		h.letterboxes.Put(&letterbox{r.answers, r.wait})
	}
	r.over()
	return true
}

// letterbox is what a retirement waits with. Used again once it is empty and no answer can come.
type letterbox struct {
	answers chan retired
	wait    *time.Timer
}

func newLetterbox() *letterbox {
	b := &letterbox{make(chan retired, maxInflight), time.NewTimer(time.Hour)}
	b.wait.Stop()
	return b
}

// over ends the retirement. An answer that came since, or comes still later, begins another.
func (r *retirement) over() {
	o := r.owner
	o.turn.mu.Lock()
	o.undoing = false
	if o.again {
		o.again = false
		o.undo()
	}
	o.turn.mu.Unlock()
	o.hall().forget(o)
}

// alone makes the first attempt by itself if that is wise, and reports whether it settled the matter.
func (r *retirement) alone() bool {
	h := r.owner.hall()
	if !h.cfg.Caller.Alone() || h.ctx.Err() != nil {
		return false
	}
	release := r.request()
	aside := h.rescuers.Get().(*rescuer)
	aside.watch(r.owner)
	sent := tenure.Lately()
	released, f := h.cfg.Caller.Release(h.ctx, release)
	if aside.leave() {
		h.rescuers.Put(aside)
	} else {
		r.ambiguous = true // the other attempts may have ended the hold
	}
	a := r.answered(release.Next != nil, sent, released, f)
	if r.judge(a) == stop {
		r.over()
		return true
	}
	return false
}

// attempt sends the release once. Attempts may run beside each other; the first has next to itself.
func (r *retirement) attempt(done func(retired)) {
	h, release := r.owner.hall(), r.request()
	h.cfg.Caller.GoRelease(h.ctx, &release, func(sent tenure.Instant, released scripts.Released, f *scripts.Failure) {
		done(r.answered(release.Next != nil, sent, released, f))
	})
}

// request is the release to send.
func (r *retirement) request() scripts.Release {
	o, first := r.owner, r.sent.Add(1) == 1
	o.turn.mu.Lock()
	release := scripts.Release{Key: o.req.Key, Owner: o.Identity(), Token: r.token, Tomb: o.tomb(), Busy: o.claim > 0}
	o.again = false
	o.turn.mu.Unlock()
	if first && r.next != nil {
		a := r.next.acquire()
		release.Next = &a
	}
	return release
}

// answered takes in what a release says about the next waiter.
func (r *retirement) answered(next bool, sent tenure.Instant, released scripts.Released, f *scripts.Failure) retired {
	o := r.owner
	o.turn.mu.Lock()
	defer o.turn.mu.Unlock()
	if next {
		r.next.requeued(sent, released, f)
	}
	if f == nil && !o.hall().listening() { // what this release granted to our own waiters is not pushed
		o.turn.pollFirst()
	}
	return retired{released, f}
}

// judge says what follows from an answer (c8).
func (r *retirement) judge(a retired) step {
	if f := a.failure; f != nil {
		r.ambiguous = r.ambiguous || f.Unknown
		r.last = f
		if r.owner.unheardOf() { // no attempt has left this process
			return stop
		}
		if f.Transient {
			return later
		}
		r.err = f
		return stop
	}
	if a.released.Ended {
		r.owner.freed.Store(true)
	}
	mine := r.owner.freed.Load() || (r.ambiguous || r.sent.Load() > 1) && r.deadline.Until() > 0
	switch {
	case a.released.More, r.owner.needed(): // c12: grants were left for another run; or a late answer came (c7)
		return again
	case !mine && r.flying > 0: // an attempt beside this one may yet say that it ended the hold
		return later
	case !mine:
		r.err = fmt.Errorf("%w: the server no longer knew it", tenure.ErrLost)
	}
	return stop
}

// unheardOf reports whether the server cannot know anything of o.
func (o *owner) unheardOf() bool {
	o.turn.mu.Lock()
	defer o.turn.mu.Unlock()
	return !o.known && o.inflight == 0
}

// needed reports whether an answer came for the ended owner after its release had been sent: it must be sent again.
func (o *owner) needed() bool {
	o.turn.mu.Lock()
	defer o.turn.mu.Unlock()
	return o.again
}

// rescuer has others release an owner whose own release is not answered for long: its connection may be dead.
type rescuer struct {
	timer *time.Timer
	mu    sync.Mutex // guards owner
	owner *owner     // nil: it left
}

func newRescuer() *rescuer {
	r := new(rescuer)
	r.timer = time.AfterFunc(time.Hour, r.rescue)
	r.timer.Stop()
	return r
}

func (r *rescuer) watch(o *owner) {
	r.mu.Lock()
	r.owner = o
	r.mu.Unlock()
	r.timer.Reset(patience)
}

// leave reports whether the rescuer was not needed.
func (r *rescuer) leave() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owner = nil
	return r.timer.Stop()
}

func (r *rescuer) rescue() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.owner; o != nil {
		o.hall().crew.Go(func() { o.retire(nil).finish() })
	}
}
