package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
)

// closing is the end of a client.
var closing = []scenario{
	{name: "Close ends holds and refuses calls", run: func(e *env) {
		c, other := e.client(), e.rival(e.client())
		l := e.lock(c)
		h := e.must(l.Lock(e.ctx()))
		ctx := h.Context(e.ctx())
		if err := shut(c, 10*time.Second); err != nil {
			e.Error(err)
		}
		e.ended(h, holdfast.ErrClosed)
		e.endedContext(ctx, holdfast.ErrClosed)
		e.is(h.Release(e.ctx()), holdfast.ErrClosed)
		e.is(h.Extend(e.ctx()), holdfast.ErrClosed)
		everyCall(e, l, e.ctx(), holdfast.ErrClosed)
		e.release(e.must(other.TryLock(e.ctx()))) // released by then
		if err := shut(c, 10*time.Second); err != nil {
			e.Errorf("closed again: %v", err)
		}
	}},
	{name: "Close wakes waiters and takes them out of the queue", run: func(e *env) {
		h := e.must(e.rival(e.client()).Lock(e.ctx()))
		c, other := e.client(), e.lock(e.client())
		var ws []*waiter
		for range 3 {
			ws = append(ws, e.wait(e.lock(c)))
		}
		e.eventually("a ticket", func() bool { return len(e.state(other).Queue) > 0 })
		if err := shut(c, 10*time.Second); err != nil {
			e.Error(err)
		}
		if q := e.state(other).Queue; len(q) != 0 {
			e.Errorf("still queued after Close: %+v", q)
		}
		for _, w := range ws {
			w.failed(holdfast.ErrClosed)
		}
		e.alive(h)
		e.release(h)
	}},
	{name: "Close wakes the waiters of a holder it closes as well", run: func(e *env) {
		c := e.client()
		h := e.must(e.rival(c).Lock(e.ctx()))
		w := e.wait(e.lock(c))
		if err := shut(c, 10*time.Second); err != nil {
			e.Error(err)
		}
		w.failed(holdfast.ErrClosed)
		e.ended(h, holdfast.ErrClosed)
		e.release(e.must(e.lock(e.client()).TryLock(e.ctx())))
	}},
	{name: "Close lets running functions finish", run: func(e *env) {
		c := e.client()
		l := e.lock(c)
		running, finish := make(chan context.Context, 1), make(chan struct{})
		did, shutDown := make(chan error, 1), make(chan error, 1)
		go func() {
			did <- l.Do(context.Background(), func(ctx context.Context) error {
				running <- ctx
				<-finish
				return ctx.Err()
			})
		}()
		inside := <-running
		go func() { shutDown <- shut(c, 20*time.Second) }()
		e.eventually("new calls are refused", func() bool {
			_, err := l.Inspect(e.ctx())
			return errors.Is(err, holdfast.ErrClosed)
		})
		e.fails(holdfast.ErrClosed)(l.TryLock(inside))
		if inside.Err() != nil || len(shutDown) > 0 {
			e.Errorf("Close did not wait: the function's context %v", context.Cause(inside))
		}
		close(finish)
		if err := <-did; err != nil {
			e.Errorf("Do: %v", err)
		}
		if err := <-shutDown; err != nil {
			e.Errorf("Close: %v", err)
		}
	}},
	{name: "Close waits for functions no longer than its context", run: func(e *env) {
		c := e.client()
		l := e.lock(c, holdfast.Lease(time.Second))
		err := l.Do(e.ctx(), func(ctx context.Context) error {
			if err := shut(c, 50*time.Millisecond); err == nil {
				e.Error("Close returned nil while a function ran")
			}
			e.endedContext(ctx, holdfast.ErrClosed)
			return errBoom
		})
		if !errors.Is(err, errBoom) {
			e.Errorf("got the error %v", err)
		}
		e.eventually("its lease is over", func() bool { return !e.state(e.lock(e.client())).Held() })
		e.lose()
	}},
	{name: "a closed client's name goes to the waiter", run: func(e *env) {
		c := e.client()
		h := e.must(e.rival(c).Lock(e.ctx()))
		l := e.lock(e.client(e.patient()))
		w := e.wait(l)
		e.queued(l, 1)
		if err := shut(c, 10*time.Second); err != nil {
			e.Error(err)
		}
		next := w.served()
		if next.Token() <= h.Token() {
			e.Errorf("token %d after %d", next.Token(), h.Token())
		}
		e.release(next)
	}},
}
