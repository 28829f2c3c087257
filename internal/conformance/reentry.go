package conformance

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// reentry is who is inside, and for how long.
var reentry = []scenario{
	{name: "re-enters by context, is released once", only: reentrant, run: reenters},
	{name: "goroutines that share a context are inside together", only: reentrant, run: func(e *env) {
		c := e.client()
		h := e.must(e.lock(c).Lock(e.ctx()))
		ctx := h.Context(e.ctx())
		var wg sync.WaitGroup
		var all sync.WaitGroup
		all.Add(10)
		for range 10 {
			wg.Go(func() {
				err := e.lock(c).Do(ctx, func(context.Context) error {
					all.Done() // nobody leaves before all are in
					all.Wait()
					return nil
				})
				if err != nil {
					e.Error(err)
				}
			})
		}
		wg.Wait()
		if d := depth(e, c); d != 1 {
			e.Errorf("depth %d at the end", d)
		}
		e.release(h)
	}},
	{name: "an outer context re-enters after an inner release", only: reentrant, run: func(e *env) {
		c := e.client()
		outer := e.must(e.lock(c).Lock(e.ctx()))
		ctx := outer.Context(e.ctx())
		inner := e.must(e.lock(c).Lock(ctx))
		inside := inner.Context(ctx)
		e.release(inner)
		for _, ctx := range []context.Context{ctx, context.WithoutCancel(inside)} {
			h := e.must(e.lock(c).TryLock(ctx))
			if h.Token() != outer.Token() {
				e.Error("it did not re-enter")
			}
			e.release(h)
		}
		e.alive(outer)
		e.release(outer)
	}},
	{name: "an inner context re-enters after the outer release", only: reentrant, run: func(e *env) {
		c := e.client()
		outer := e.must(e.lock(c).Lock(e.ctx()))
		inner := e.must(e.lock(c).Lock(outer.Context(e.ctx())))
		inside := inner.Context(e.ctx())
		e.release(outer)
		e.alive(inner)
		e.fails(holdfast.ErrNotAcquired)(e.rival(e.client()).TryLock(e.ctx()))
		h := e.must(e.lock(c).TryLock(inside))
		e.release(inner)
		e.alive(h)
		e.release(h)
		e.free()
	}},
	{name: "a loss ends every level", only: reentrant, run: func(e *env) {
		c := e.client()
		outer := e.must(e.lock(c, holdfast.FixedLease(time.Second)).Lock(e.ctx()))
		ctx := outer.Context(e.ctx())
		inner := e.must(e.lock(c, holdfast.Lease(time.Hour)).Lock(ctx)) // on the terms of the tenure
		inside := inner.Context(ctx)
		e.ended(inner, holdfast.ErrLost)
		e.ended(outer, holdfast.ErrLost)
		e.endedContext(inside, holdfast.ErrLost)
		e.is(inner.Release(e.ctx()), holdfast.ErrLost)
		e.is(outer.Release(e.ctx()), holdfast.ErrLost)
	}},
	{name: "a re-entry notices a loss", only: reentrant, run: func(e *env) {
		c := e.client()
		h := e.must(e.lock(c).Lock(e.ctx()))
		ctx := h.Context(e.ctx())
		e.lose()
		e.fails(holdfast.ErrLost)(e.lock(c).TryLock(ctx))
		e.ended(h, holdfast.ErrLost)
		e.endedContext(ctx, holdfast.ErrLost)
		e.free() // and has created nothing
	}},
	{name: "without holds it waits", only: reentrant, run: func(e *env) {
		c := e.client(e.patient())
		h := e.must(e.lock(c).Lock(e.ctx()))
		out := holdfast.WithoutHolds(h.Context(e.ctx()))
		e.fails(holdfast.ErrNotAcquired)(e.rival(c).TryLock(out))
		w := e.waitWith(context.WithoutCancel(out), e.rival(c))
		w.waits()
		e.release(h)
		next := w.served()
		if next.Token() <= h.Token() {
			e.Errorf("token %d after %d", next.Token(), h.Token())
		}
		e.release(next)
	}},
	{name: "NonReentrant waits for itself, and is told so", only: reentrant, run: func(e *env) {
		c := e.client()
		h := e.must(e.lock(c, holdfast.NonReentrant()).Lock(e.ctx()))
		ctx := h.Context(e.ctx())
		again := e.rival(c, holdfast.NonReentrant())
		e.fails(holdfast.ErrNotAcquired)(again.TryLock(ctx))
		w := e.waitWith(ctx, again)
		w.waits()
		w.cancel(errBoom)
		w.failed(context.Canceled, errBoom)
		toldOfItself(e, w.err)
		if msg := fmt.Sprint(w.err); !strings.Contains(msg, "NonReentrant") || strings.Contains(msg, "to re-enter") {
			e.Errorf("the hint is not about NonReentrant: %v", w.err)
		}
		e.alive(h)
		e.release(h)
	}},
	{name: "a forgotten context is told", only: reentrant, run: func(e *env) {
		c := e.client()
		err := e.lock(c).Do(e.ctx(), func(context.Context) error {
			w := e.waitWith(e.within(100*time.Millisecond), e.rival(c))
			w.failed(context.DeadlineExceeded)
			toldOfItself(e, w.err)
			w = e.waitWith(context.Background(), e.rival(c, holdfast.Wait(100*time.Millisecond)))
			w.failed(holdfast.ErrNotAcquired)
			toldOfItself(e, w.err)
			return nil
		})
		if err != nil {
			e.Error(err)
		}
	}},
}

// reenters goes five levels deep, each through a value of its own, and leaves them in disorder.
func reenters(e *env) {
	c, other := e.client(), e.rival(e.client())
	ctx := e.ctx()
	var holds []*holdfast.Hold
	for i := range 5 {
		l := e.lock(c)
		acquire := l.Lock
		if i%2 == 1 {
			acquire = l.TryLock
		}
		h := e.must(acquire(ctx))
		ctx = h.Context(ctx)
		holds = append(holds, h)
		if d := depth(e, c); d != i+1 || h.Token() != holds[0].Token() {
			e.Errorf("level %d has depth %d, token %d of %d", i+1, d, h.Token(), holds[0].Token())
		}
	}
	for released, i := range []int{2, 0, 4, 1, 3} {
		e.fails(holdfast.ErrNotAcquired)(other.TryLock(e.ctx()))
		e.alive(holds[i])
		e.release(holds[i])
		e.ended(holds[i], holdfast.ErrReleased)
		e.is(holds[i].Release(e.ctx()), holdfast.ErrReleased)
		if left := 4 - released; left > 0 {
			if d := depth(e, c); d != left {
				e.Errorf("depth %d with %d levels left", d, left)
			}
		}
	}
	e.gone()
	e.release(e.must(other.TryLock(e.ctx())))
}

// depth is how deep the one holder is, as the server has it.
func depth(e *env, c *holdfast.Client) int {
	e.Helper()
	s := e.state(e.lock(c))
	if len(s.Holders) != 1 || s.Holders[0].Client != c.ID() || s.Holders[0].Weight != e.kind.weight {
		e.Fatalf("held by %+v", s.Holders)
	}
	return s.Holders[0].Depth
}

// toldOfItself checks the hint of a wait for what this very client holds.
func toldOfItself(e *env, err error) {
	e.Helper()
	if err == nil || !strings.Contains(err.Error(), "this client has held it for") {
		e.Errorf("the error gives no hint: %v", err)
	}
}
