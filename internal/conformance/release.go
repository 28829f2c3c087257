package conformance

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
)

// releases is what Release does, by whomever and whenever it is called.
var releases = []scenario{
	{name: "a release frees at once", run: func(e *env) {
		one, two := e.lock(e.client()), e.rival(e.client())
		h := e.must(one.Lock(e.ctx()))
		e.release(h)
		e.gone()
		e.release(e.must(two.TryLock(e.ctx())))
	}},
	{name: "a second release is told", run: func(e *env) {
		c := e.client()
		h := e.must(e.lock(c).Lock(e.ctx()))
		e.release(h)
		next := e.must(e.lock(c).Lock(e.ctx()))
		for range 2 {
			e.is(h.Release(e.ctx()), holdfast.ErrReleased)
		}
		e.is(h.Extend(e.ctx()), holdfast.ErrReleased)
		e.ended(h, holdfast.ErrReleased)
		e.alive(next)
		e.release(next)
	}},
	{name: "one of many releases counts", run: func(e *env) {
		h := e.must(e.lock(e.client()).Lock(e.ctx()))
		var wg sync.WaitGroup
		var first atomic.Int64
		for range 10 {
			wg.Go(func() {
				switch err := h.Release(e.Context()); {
				case err == nil:
					first.Add(1)
				case !errors.Is(err, holdfast.ErrReleased):
					e.Error(err)
				}
			})
		}
		wg.Wait()
		if n := first.Load(); n != 1 {
			e.Errorf("%d releases returned nil", n)
		}
	}},
	{name: "a release works with an ended context", run: func(e *env) {
		one, two := e.lock(e.client()), e.rival(e.client())
		ctx, cancel := context.WithCancel(e.ctx())
		h := e.must(one.Lock(ctx))
		cancel()
		e.alive(h) // the context bounded the wait
		if err := h.Release(ctx); err != nil {
			e.Error(err)
		}
		e.release(e.must(two.TryLock(e.ctx())))
	}},
	{name: "another goroutine may release", run: func(e *env) {
		h := e.must(e.lock(e.client()).Lock(e.ctx()))
		done := make(chan error, 1)
		go func() { done <- h.Release(context.Background()) }()
		if err := <-done; err != nil {
			e.Error(err)
		}
		e.ended(h, holdfast.ErrReleased)
	}},
	{name: "a nil hold is a released one", run: func(e *env) {
		h, err := e.lock(e.client()).Lock(e.within(0))
		if h != nil || err == nil {
			e.Fatalf("got %v, error %v", h, err)
		}
		for _, err := range []error{h.Release(e.ctx()), h.Err(), h.Extend(e.ctx())} {
			if !errors.Is(err, holdfast.ErrReleased) {
				e.Errorf("got the error %v", err)
			}
		}
		if h.Valid() || h.Token() != 0 || h.Name() != "" || !h.Deadline().IsZero() || !closed(h.Done()) {
			e.Errorf("the nil hold looks alive: %v", h)
		}
		_ = h.LogValue()
		e.endedContext(h.Context(e.ctx()), holdfast.ErrReleased)
	}},
	{name: "a hold describes itself", run: func(e *env) {
		before := time.Now()
		h := e.must(e.lock(e.client()).Lock(e.ctx()))
		e.alive(h)
		if h.Name() != e.name || h.Token() <= 0 {
			e.Errorf("name %q, token %d", h.Name(), h.Token())
		}
		if left := h.Deadline().Sub(before); left < 20*time.Second || h.Deadline().After(time.Now().Add(30*time.Second)) {
			e.Errorf("a lease of 30 s ends in %v", left)
		}
		attrs := map[string]bool{}
		for _, a := range h.LogValue().Group() {
			attrs[a.Key] = true
		}
		if !attrs["name"] || !attrs["token"] || !attrs["owner"] {
			e.Errorf("logged as %v", h.LogValue())
		}
		token := h.Token()
		e.release(h)
		e.ended(h, holdfast.ErrReleased)
		if h.Token() != token || h.Name() != e.name {
			e.Errorf("after the release: name %q, token %d, was %d", h.Name(), h.Token(), token)
		}
	}},
}
