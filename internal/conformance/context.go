package conformance

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
)

type valueKey struct{}

// contexts is what the context of a hold tells and carries.
var contexts = []scenario{
	{name: "a context ends with the release", run: func(e *env) {
		h := e.must(e.lock(e.client()).Lock(e.ctx()))
		parent := context.WithValue(e.ctx(), valueKey{}, "kept")
		ctx := h.Context(parent)
		child, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if ctx.Err() != nil || child.Value(valueKey{}) != "kept" {
			e.Errorf("error %v, value %v", ctx.Err(), child.Value(valueKey{}))
		}
		e.release(h)
		e.endedContext(ctx, holdfast.ErrReleased)
		e.endedContext(child, holdfast.ErrReleased)
		e.endedContext(h.Context(parent), holdfast.ErrReleased)
		if parent.Err() != nil {
			e.Error("the parent ended as well")
		}
	}},
	{name: "a context ends with the loss", run: func(e *env) {
		h := e.must(e.lock(e.client(), holdfast.FixedLease(300*time.Millisecond)).Lock(e.ctx()))
		ctx := h.Context(e.ctx())
		e.endedContext(ctx, holdfast.ErrLost)
		e.ended(h, holdfast.ErrLost)
		e.endedContext(h.Context(e.ctx()), holdfast.ErrLost)
	}},
	{name: "a context ends with its parent, the hold lasts", run: func(e *env) {
		h := e.must(e.lock(e.client()).Lock(e.ctx()))
		parent, cancel := context.WithCancelCause(e.ctx())
		ctx := h.Context(parent)
		cancel(errBoom)
		e.endedContext(ctx, errBoom)
		e.alive(h)
		other := h.Context(e.ctx())
		if other.Err() != nil {
			e.Error("the hold's other context ended as well")
		}
		e.release(h)
	}},
	{name: "Held finds the live hold", run: func(e *env) {
		c, other := e.client(), e.client()
		l := e.lock(c)
		h := e.must(l.Lock(e.ctx()))
		inside := h.Context(e.ctx())
		for _, row := range []struct {
			what string
			l    locker
			ctx  context.Context
			want bool
		}{
			{"its context", l, inside, true},
			{"a derived context", l, context.WithValue(inside, valueKey{}, 1), true},
			{"a detached context", l, context.WithoutCancel(inside), true},
			{"a fresh value", e.lock(c), inside, true},
			{"a plain context", l, e.ctx(), false},
			{"WithoutHolds", l, holdfast.WithoutHolds(inside), false},
			{"another name", e.kind.lock(c, e.name+".other"), inside, false},
			{"another client", e.lock(other), inside, false},
		} {
			got, held := row.l.Held(row.ctx)
			if held != row.want || held && got.Token() != h.Token() {
				e.Errorf("%s: %v, %v", row.what, got, held)
			}
		}
		e.release(h)
		for _, ctx := range []context.Context{inside, context.WithoutCancel(inside)} {
			if got, held := l.Held(ctx); held {
				e.Errorf("after the release: %v", got)
			}
		}
	}},
	{name: "a context without holds still ends and still has its values", run: func(e *env) {
		h := e.must(e.lock(e.client()).Lock(e.ctx()))
		out := holdfast.WithoutHolds(h.Context(context.WithValue(e.ctx(), valueKey{}, "kept")))
		if out.Value(valueKey{}) != "kept" {
			e.Error("the value is gone")
		}
		e.release(h)
		e.endedContext(out, holdfast.ErrReleased)
	}},
	{name: "the context of a released hold acquires nothing", run: func(e *env) {
		l := e.lock(e.client())
		h := e.must(l.Lock(e.ctx()))
		ctx := h.Context(e.ctx())
		e.release(h)
		e.fails(holdfast.ErrReleased, context.Canceled)(l.Lock(ctx))
		e.fails(holdfast.ErrReleased, context.Canceled)(l.TryLock(ctx))
		e.is(l.Do(ctx, func(context.Context) error { e.Error("Do ran"); return nil }), holdfast.ErrReleased)
	}},
	{name: "the detached context of an ended hold waits like anybody", run: func(e *env) {
		c := e.client(e.patient())
		l := e.lock(c)
		h := e.must(l.Lock(e.ctx()))
		detached := context.WithoutCancel(h.Context(e.ctx()))
		e.release(h)
		r := e.must(e.rival(e.client(e.patient())).Lock(e.ctx()))
		e.fails(holdfast.ErrNotAcquired)(l.TryLock(detached))
		w := e.waitWith(detached, l)
		e.queued(l, 1)
		w.waits()
		e.release(r)
		next := w.served()
		if next.Token() <= r.Token() {
			e.Errorf("token %d after %d", next.Token(), r.Token())
		}
		e.release(next)
	}},
	{name: "a context's hold is its client's alone", run: func(e *env) {
		h := e.must(e.lock(e.client()).Lock(e.ctx()))
		e.fails(holdfast.ErrNotAcquired)(e.rival(e.client()).TryLock(h.Context(e.ctx())))
		e.release(h)
	}},
	{name: "without re-entry a nested acquire takes more", only: notReentrant, run: func(e *env) {
		l := e.lock(e.client())
		h := e.must(l.Lock(e.ctx()))
		ctx := h.Context(e.ctx())
		e.fails(holdfast.ErrNotAcquired)(l.TryLock(ctx))
		w := e.waitWith(ctx, l)
		e.queued(l, 1)
		w.cancel(errBoom)
		w.failed(errBoom)
		e.release(h)
	}},
}
