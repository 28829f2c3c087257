package conformance

import (
	"time"

	"github.com/holdfast-go/holdfast"
)

// losses is what befalls a holder from outside, and that it is told.
var losses = []scenario{
	{name: "a forced release lets the waiter in and tells the holder", run: func(e *env) {
		h := e.must(e.lock(e.client(), holdfast.Lease(3*time.Second)).Lock(e.ctx()))
		ctx := h.Context(e.ctx())
		theirs := e.rival(e.client(e.patient()))
		w := e.wait(theirs)
		e.queued(theirs, 1)
		if err := e.lock(e.client()).ForceRelease(e.ctx()); err != nil {
			e.Fatal(err)
		}
		next := w.served()
		e.ended(h, holdfast.ErrLost)
		e.endedContext(ctx, holdfast.ErrLost)
		e.is(h.Release(e.ctx()), holdfast.ErrLost)
		if s := e.state(theirs); len(s.Holders) != 1 || s.Holders[0].Token != next.Token() || next.Token() <= h.Token() {
			e.Errorf("token %d after %d, the server has %+v", next.Token(), h.Token(), s.Holders)
		}
		e.alive(next)
		e.release(next)
	}},
	{name: "a forced release is told by message", run: func(e *env) {
		if e.suite.polling {
			e.Skip("without a subscription there are no messages")
		}
		// A holder listens from its first contention on.
		r := e.must(e.rival(e.client()).Lock(e.ctx()))
		mine := e.lock(e.client(e.patient()))
		w := e.wait(mine)
		e.queued(mine, 1)
		e.release(r)
		h := w.served()
		if err := e.lock(e.client()).ForceRelease(e.ctx()); err != nil {
			e.Fatal(err)
		}
		e.ended(h, holdfast.ErrLost) // its next renewal is 10 s away
		e.release(e.must(e.rival(e.client()).TryLock(e.ctx())))
	}},
	{name: "a forced release of a free name does nothing", run: func(e *env) {
		l := e.lock(e.client())
		if err := l.ForceRelease(e.ctx()); err != nil {
			e.Error(err)
		}
		e.gone()
		e.release(e.must(l.TryLock(e.ctx())))
	}},
	{name: "lost data is told and the waiter served", run: func(e *env) {
		const lease = 3 * time.Second
		h := e.must(e.lock(e.client(), holdfast.Lease(lease)).Lock(e.ctx()))
		ctx := h.Context(e.ctx())
		theirs := e.rival(e.client())
		w := e.wait(theirs)
		e.queued(theirs, 1)
		deadline := h.Deadline()
		e.lose()
		e.ended(h, holdfast.ErrLost)
		if late := time.Since(deadline); late > 0 {
			e.Errorf("told %v after its deadline, so not by a renewal", late)
		}
		e.endedContext(ctx, holdfast.ErrLost)
		next := w.served()
		e.is(h.Release(e.ctx()), holdfast.ErrLost)
		if next.Token() <= h.Token() {
			e.Errorf("token %d after %d", next.Token(), h.Token())
		}
		e.alive(next)
		e.release(next)
	}},
	{name: "a release notices lost data", run: func(e *env) {
		h := e.must(e.lock(e.client()).Lock(e.ctx()))
		e.lose()
		e.is(h.Release(e.ctx()), holdfast.ErrLost)
		e.free()
	}},
	{name: "Extend notices lost data", run: func(e *env) {
		h := e.must(e.lock(e.client()).Lock(e.ctx()))
		e.lose()
		e.is(h.Extend(e.ctx()), holdfast.ErrLost)
		e.ended(h, holdfast.ErrLost)
		e.free()
	}},
	{name: "a stale hold spares the next holder", run: func(e *env) {
		one, two := e.lock(e.client()), e.rival(e.client())
		h := e.must(one.Lock(e.ctx()))
		e.lose()
		next := e.must(two.TryLock(e.ctx()))
		e.is(h.Release(e.ctx()), holdfast.ErrLost)
		e.fails(holdfast.ErrNotAcquired)(one.TryLock(e.ctx()))
		if err := next.Extend(e.ctx()); err != nil {
			e.Error(err)
		}
		e.alive(next)
		e.release(next)
	}},
}
