package conformance

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast"
)

// doing is the closure form.
var doing = []scenario{
	{name: "Do runs inside and releases", run: func(e *env) {
		l, other := e.lock(e.client()), e.rival(e.client())
		err := l.Do(e.ctx(), func(ctx context.Context) error {
			h, held := l.Held(ctx)
			if !held {
				e.Fatal("Do's context carries no hold")
			}
			e.alive(h)
			e.fails(holdfast.ErrNotAcquired)(other.TryLock(ctx))
			return nil
		})
		if err != nil {
			e.Error(err)
		}
		e.release(e.must(other.TryLock(e.ctx())))
	}},
	{name: "Do returns the function's error", run: func(e *env) {
		l := e.lock(e.client())
		var inside context.Context
		err := l.Do(e.ctx(), func(ctx context.Context) error { inside = ctx; return errBoom })
		if !errors.Is(err, errBoom) || errors.Is(err, holdfast.ErrReleased) {
			e.Errorf("got the error %v", err)
		}
		e.endedContext(inside, holdfast.ErrReleased)
		e.release(e.must(l.TryLock(e.ctx())))
	}},
	{name: "Do releases when the function panics", run: func(e *env) {
		l := e.lock(e.client())
		func() {
			defer func() {
				if p := recover(); p != errBoom { //nolint:errorlint // the very value
					e.Errorf("recovered %v", p)
				}
			}()
			_ = l.Do(e.ctx(), func(context.Context) error { panic(errBoom) })
		}()
		e.release(e.must(l.TryLock(e.ctx())))
	}},
	{name: "Do releases when the goroutine exits", run: func(e *env) {
		l := e.lock(e.client())
		exited := make(chan struct{})
		go func() {
			defer close(exited)
			_ = l.Do(context.Background(), func(context.Context) error { runtime.Goexit(); return nil })
		}()
		<-exited
		e.release(e.must(l.TryLock(e.ctx())))
	}},
	{name: "Do tells of a loss", run: func(e *env) {
		for _, fails := range []error{errBoom, nil} {
			err := e.lock(e.client(), holdfast.FixedLease(300*time.Millisecond)).Do(e.ctx(), func(ctx context.Context) error {
				e.endedContext(ctx, holdfast.ErrLost)
				return fails
			})
			if !errors.Is(err, holdfast.ErrLost) || fails != nil && !errors.Is(err, fails) {
				e.Errorf("got the error %v, want ErrLost and %v", err, fails)
			}
		}
	}},
	{name: "Do nests", only: reentrant, run: func(e *env) {
		c, other := e.client(), e.rival(e.client())
		err := e.lock(c).Do(e.ctx(), func(outer context.Context) error {
			err := e.lock(c).Do(outer, func(context.Context) error {
				if d := depth(e, c); d != 2 {
					e.Errorf("depth %d", d)
				}
				return errBoom
			})
			if d := depth(e, c); d != 1 || outer.Err() != nil {
				e.Errorf("depth %d, context %v", d, outer.Err())
			}
			e.fails(holdfast.ErrNotAcquired)(other.TryLock(e.ctx()))
			return err
		})
		if !errors.Is(err, errBoom) {
			e.Errorf("got the error %v", err)
		}
		e.release(e.must(other.TryLock(e.ctx())))
	}},
	{name: "the function may release by itself", run: func(e *env) {
		l := e.lock(e.client())
		err := l.Do(e.ctx(), func(ctx context.Context) error {
			h, _ := l.Held(ctx)
			return h.Release(ctx)
		})
		if err != nil {
			e.Error(err)
		}
	}},
	{name: "Do's caller may leave while the function runs", run: func(e *env) {
		l := e.lock(e.client())
		ctx, cancel := context.WithCancelCause(e.ctx())
		err := l.Do(ctx, func(ctx context.Context) error {
			cancel(errBoom)
			e.endedContext(ctx, errBoom)
			h, err := l.Held(context.WithoutCancel(ctx))
			if !err || !h.Valid() {
				e.Error("the hold ended with the caller's context")
			}
			return context.Cause(ctx)
		})
		if !errors.Is(err, errBoom) {
			e.Errorf("got the error %v", err)
		}
		e.release(e.must(l.TryLock(e.ctx())))
	}},
	{name: "Do does not run without the lock", run: func(e *env) {
		h, l := blocked(e)
		ran := func(context.Context) error { e.Error("Do ran"); return nil }
		e.is(l.Do(e.within(50*time.Millisecond), ran), context.DeadlineExceeded)
		e.release(h)
	}},
}
