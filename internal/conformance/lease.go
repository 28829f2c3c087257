package conformance

import (
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

// leases is how long a hold lasts. Leases under 500 ms are those that are to be lost.
var leases = []scenario{
	{name: "a fixed lease ends before the next holder begins", run: func(e *env) {
		h := e.must(e.lock(e.client(), holdfast.FixedLease(400*time.Millisecond)).Lock(e.ctx()))
		theirs := e.rival(e.client())
		w := e.wait(theirs)
		<-w.got
		if h.Valid() || !closed(h.Done()) {
			e.Error("two holders at once")
		}
		next := w.served()
		e.ended(h, holdfast.ErrLost)
		e.is(h.Release(e.ctx()), holdfast.ErrLost)
		e.is(h.Extend(e.ctx()), holdfast.ErrLost)
		if next.Token() <= h.Token() {
			e.Errorf("token %d after %d", next.Token(), h.Token())
		}
		e.alive(next)
		e.release(next)
	}},
	{name: "a fixed lease ends with nobody asking", run: func(e *env) {
		h := e.must(e.lock(e.client(), holdfast.FixedLease(300*time.Millisecond)).Lock(e.ctx()))
		began, deadline := time.Now(), h.Deadline()
		e.ended(h, holdfast.ErrLost)
		if now := time.Now(); now.Before(deadline) || deadline.After(began.Add(300*time.Millisecond)) {
			e.Errorf("ended %v after its deadline", now.Sub(deadline))
		}
		e.free()
	}},
	{name: "Extend prolongs a fixed lease", run: func(e *env) {
		h := e.must(e.lock(e.client(), holdfast.FixedLease(1500*time.Millisecond)).Lock(e.ctx()))
		theirs := e.rival(e.client())
		before, token := h.Deadline(), h.Token()
		passes(before.Add(-900 * time.Millisecond)) // of a third of the lease
		if err := h.Extend(e.ctx()); err != nil {
			e.Fatal(err)
		}
		extended := h.Deadline()
		if extended.Sub(before) < 300*time.Millisecond || h.Token() != token {
			e.Errorf("the deadline moved by %v, token %d, was %d", extended.Sub(before), h.Token(), token)
		}
		passes(before.Add(200 * time.Millisecond)) // of the first lease
		if r, err := theirs.TryLock(e.ctx()); err == nil {
			if time.Now().Before(extended) { // else this machine is too slow to tell
				e.Error("two holders at once")
			}
			e.release(r)
		} else {
			e.is(err, holdfast.ErrNotAcquired)
		}
		e.ended(h, holdfast.ErrLost)
		if time.Now().Before(extended) {
			e.Error("it ended before its deadline")
		}
	}},
	{name: "Extend moves the deadline of a renewed lease", run: func(e *env) {
		h := e.must(e.lock(e.client()).Lock(e.ctx()))
		before := h.Deadline()
		if err := h.Extend(e.ctx()); err != nil {
			e.Fatal(err)
		}
		if !h.Deadline().After(before) {
			e.Errorf("the deadline was %v, is %v", before, h.Deadline())
		}
		e.release(h)
	}},
	{name: "a renewed lease outlives itself", run: func(e *env) {
		const lease = 2 * time.Second
		h := e.must(e.lock(e.client(), holdfast.Lease(lease)).Lock(e.ctx()))
		theirs := e.rival(e.client())
		first, token := h.Deadline(), h.Token()
		passes(first.Add(lease / 5)) // of its first lease, by the server's count as well
		e.alive(h)
		if !h.Deadline().After(first) || h.Token() != token {
			e.Errorf("deadline %v, was %v; token %d, was %d", h.Deadline(), first, h.Token(), token)
		}
		e.fails(holdfast.ErrNotAcquired)(theirs.TryLock(e.ctx()))
		e.release(h)
	}},
	{name: "MaxHold ends a renewed hold", run: func(e *env) {
		const limit = 1200 * time.Millisecond
		h := e.must(e.lock(e.client(), holdfast.MaxHold(limit)).Lock(e.ctx()))
		began := time.Now()
		theirs := e.rival(e.client(e.patient()))
		w := e.wait(theirs)
		if h.Deadline().After(began.Add(limit)) {
			e.Errorf("the deadline is %v after the limit", h.Deadline().Sub(began.Add(limit)))
		}
		if err := h.Extend(e.ctx()); err != nil || h.Deadline().After(began.Add(limit)) {
			e.Errorf("extended past the limit, error %v", err)
		}
		e.ended(h, holdfast.ErrLost)
		if took := time.Since(began); took < limit-50*time.Millisecond {
			e.Errorf("it ended after %v", took)
		}
		if !strings.Contains(h.Err().Error(), "MaxHold") {
			e.Errorf("the error does not tell why: %v", h.Err())
		}
		e.release(w.served()) // although the lease lasts on
		e.is(h.Release(e.ctx()), holdfast.ErrLost)
	}},
	{name: "MaxHold counts over a short lease too", run: func(e *env) {
		const limit = 2500 * time.Millisecond
		h := e.must(e.lock(e.client(), holdfast.Lease(2*time.Second), holdfast.MaxHold(limit)).Lock(e.ctx()))
		began := time.Now()
		e.closesBy(began.Add(limit), h.Done(), "Done")
		e.ended(h, holdfast.ErrLost)
		if took := time.Since(began); took < limit-50*time.Millisecond {
			e.Errorf("it ended after %v: %v", took, h.Err())
		}
	}},
	{name: "a served waiter gets its lease", run: func(e *env) {
		for _, lease := range []holdfast.LockOption{holdfast.Lease(20 * time.Second), holdfast.FixedLease(20 * time.Second)} {
			h, _ := blocked(e)
			l := e.lock(e.client(), lease)
			w := e.wait(l)
			e.queued(l, 1)
			e.release(h)
			next := w.served()
			e.eventually("a whole lease, here", func() bool { return time.Until(next.Deadline()) > 10*time.Second })
			if s := e.state(l); len(s.Holders) != 1 || s.Holders[0].LeaseLeft < 10*time.Second {
				e.Errorf("the server has %+v", s.Holders)
			}
			e.release(next)
		}
	}},
	{name: "a served waiter keeps to a short fixed lease", run: func(e *env) {
		const lease = 1500 * time.Millisecond // longer than it takes to set it, shorter than the claim
		h, _ := blocked(e)
		l := e.lock(e.client(), holdfast.FixedLease(lease))
		w := e.wait(l)
		e.queued(l, 1)
		e.release(h)
		next := w.served()
		limit := time.Now().Add(lease)
		for !closed(next.Done()) {
			if over := next.Deadline().Sub(limit); over > 500*time.Millisecond { // set late, it lasts by 0.85 s longer
				e.Errorf("a fixed lease of %v is to last %v", lease, lease+over)
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		_ = next.Release(e.ctx())
	}},
}
