package turnstile

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/scripts"
	"github.com/holdfast-go/holdfast/internal/tenure"
)

// retirement sends the release of an owner that has ended until it is answered or nothing of the owner can be left.
// One goroutine runs it.
type retirement struct {
	owner     *owner
	next      *owner // queued by the first attempt, or nil
	token     int64
	deadline  tenure.Instant // of the tenure
	giveUp    time.Time      // the lease must have ended by then
	answers   chan retired
	flying    int  // attempts without an answer so far
	sent      int  // attempts
	ambiguous bool // an attempt may have run whose answer is lost
	pause     time.Duration
	last      *scripts.Failure
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
		owner: o, next: next, deadline: tenure.Now(), pause: minBackoff, answers: make(chan retired, maxInflight),
		giveUp: time.Now().Add(late + max(o.req.Settings.Lease, o.hall.cfg.Claim) + time.Second),
	}
	if o.tenure != nil {
		r.token, r.deadline = o.tenure.Token(), o.tenure.Deadline()
	}
	return r
}

// finish goes on to the end, in the background.
func (r *retirement) finish() {
	h := r.owner.hall
	if done, _ := r.run(r.giveUp); !done && h.ctx.Err() == nil {
		h.log.warn("holdfast: a release found no answer, the lease ends what is left", "name", r.owner.turn.name, "error", r.last)
		r.over()
	}
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
	o.hall.forget(o)
}

// run makes attempts until one settles the matter or the time is over. An attempt without an answer is not
// waited for: the next one goes beside it.
func (r *retirement) run(until time.Time) (done bool, err error) {
	h := r.owner.hall
	wait := time.NewTimer(0)
	defer wait.Stop()
	for {
		if r.flying < maxInflight {
			r.send()
		}
		wait.Reset(min(patience, time.Until(until)))
		select {
		case a := <-r.answers:
			r.flying--
			if again, err := r.settle(a); !again {
				r.over()
				return true, err
			}
		case <-wait.C:
		case <-h.ctx.Done():
			return false, tenure.ErrClosed
		}
		if !time.Now().Before(until) {
			return false, nil
		}
	}
}

// send makes an attempt without waiting for it.
func (r *retirement) send() {
	o, next := r.owner, r.next
	r.next = nil
	o.turn.mu.Lock()
	release := scripts.Release{Key: o.turn.key, Owner: o.id, Token: r.token, Tomb: o.tomb()}
	o.again = false
	o.turn.mu.Unlock()
	if next != nil {
		a := next.acquire()
		release.Next = &a
	}
	r.flying++
	r.sent++
	o.hall.crew.Go(func() {
		sent := tenure.Now()
		released, f := o.hall.cfg.Caller.Release(o.hall.ctx, release)
		if next != nil {
			next.turn.mu.Lock()
			next.requeued(sent, released, f)
			next.turn.mu.Unlock()
		}
		r.answers <- retired{released, f}
	})
}

// settle judges an answer (c8): again, if another attempt is needed.
func (r *retirement) settle(a retired) (again bool, err error) {
	if f := a.failure; f != nil {
		r.ambiguous = r.ambiguous || f.Unknown
		r.last = f
		if !f.Transient {
			return false, f
		}
		pause := jitter(r.pause)
		r.pause = min(2*r.pause, maxBackoff)
		return r.owner.hall.sleep(pause), tenure.ErrClosed
	}
	mine := a.released.Ended || (r.ambiguous || r.sent > 1) && r.deadline.Until() > 0
	switch {
	case a.released.More, r.owner.needed(): // c12: grants were left for another run; or a late answer came (c7)
		r.ambiguous = r.ambiguous || mine
		return true, nil
	case mine:
		return false, nil
	}
	return false, fmt.Errorf("%w: the server no longer knew it", tenure.ErrLost)
}

// needed reports whether an answer came for the ended owner after its release had been sent: it must be sent again.
func (o *owner) needed() bool {
	o.turn.mu.Lock()
	defer o.turn.mu.Unlock()
	return o.again
}
