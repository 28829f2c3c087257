package conformance

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

var errBoom = errors.New("boom")

// waits is how a wait ends, well or not, and what it leaves.
var waits = []scenario{
	{name: "a waiter of another client is served on release", run: func(e *env) {
		one, two := e.client(e.patient()), e.client(e.patient())
		servedOnRelease(e, one, two)
	}},
	{name: "a waiter of the same client is served on release", run: func(e *env) {
		c := e.client(e.patient())
		servedOnRelease(e, c, c)
	}},
	{name: "waiters are served one after another", run: func(e *env) {
		clients := []*holdfast.Client{e.client(e.patient()), e.client(e.patient())}
		h := e.must(e.rival(clients[0]).Lock(e.ctx()))
		var ws []*waiter
		for i := range 4 {
			ws = append(ws, e.wait(e.lock(clients[i%2])))
		}
		e.release(h)
		var wg sync.WaitGroup
		for _, w := range ws {
			wg.Go(func() {
				<-w.got
				if w.err == nil {
					w.err = w.hold.Release(e.Context())
				}
			})
		}
		wg.Wait()
		for _, w := range ws {
			if w.err != nil {
				e.Error(w.err)
			}
		}
	}},
	{name: "waiters are served in order", only: func(k kind) bool { return k.ordered && k.exclusive }, run: servedInOrder},
	{name: "a wait ends at its deadline", run: func(e *env) {
		h, l := blocked(e)
		began := time.Now()
		w := e.waitWith(e.within(time.Second), l)
		e.queued(l, 1)
		w.failed(context.DeadlineExceeded)
		if took := time.Since(began); took < time.Second || took > time.Second+soon {
			e.Errorf("it took %v", took)
		}
		if errors.Is(w.err, holdfast.ErrNotAcquired) || errors.Is(w.err, holdfast.ErrUnavailable) {
			e.Errorf("the error says too much: %v", w.err)
		}
		e.release(h)
	}},
	{name: "a wait ends when it is cancelled, with the cause", run: func(e *env) {
		h, l := blocked(e)
		w := e.wait(l)
		e.queued(l, 1)
		began := time.Now()
		w.cancel(errBoom)
		w.failed(context.Canceled, errBoom)
		if took := time.Since(began); took > soon {
			e.Errorf("it took %v", took)
		}
		e.release(h)
	}},
	{name: "with an ended context nothing is sent", run: func(e *env) {
		c, sent := e.countedClient()
		ctx, cancel := context.WithCancelCause(e.ctx())
		cancel(errBoom)
		everyCall(e, e.lock(c), ctx, context.Canceled, errBoom)
		if n := sent.n.Load(); n != 0 {
			e.Errorf("%d commands were sent", n)
		}
		e.release(e.must(e.lock(c).TryLock(e.ctx())))
		if sent.n.Load() == 0 {
			e.Error("the commands are not counted at all")
		}
	}},
	{name: "the Wait option limits the wait", run: func(e *env) {
		h, _ := blocked(e)
		l := e.lock(e.client(), holdfast.Wait(100*time.Millisecond))
		began := time.Now()
		w := e.waitWith(context.Background(), l)
		w.failed(holdfast.ErrNotAcquired)
		if took := time.Since(began); took < 100*time.Millisecond || took > soon {
			e.Errorf("it took %v", took)
		}
		if errors.Is(w.err, context.DeadlineExceeded) || errors.Is(w.err, context.Canceled) {
			e.Errorf("the error blames the context: %v", w.err)
		}
		err := l.Do(context.Background(), func(context.Context) error { e.Error("Do ran without the lock"); return nil })
		e.is(err, holdfast.ErrNotAcquired)
		e.release(h)
	}},
	{name: "the Wait option does not limit the work", run: func(e *env) {
		err := e.lock(e.client(), holdfast.Wait(time.Minute)).Do(context.Background(), func(ctx context.Context) error {
			if _, limited := ctx.Deadline(); limited {
				e.Error("the work has a deadline")
			}
			return nil
		})
		if err != nil {
			e.Error(err)
		}
	}},
	{name: "the context ends a wait before the Wait option does", run: func(e *env) {
		h, _ := blocked(e)
		w := e.waitWith(e.within(100*time.Millisecond), e.lock(e.client(), holdfast.Wait(time.Minute)))
		w.failed(context.DeadlineExceeded)
		if errors.Is(w.err, holdfast.ErrNotAcquired) {
			e.Errorf("the error says too much: %v", w.err)
		}
		e.release(h)
	}},
	{name: "a cancelled wait leaves nothing", run: func(e *env) {
		h, l := blocked(e)
		var ws []*waiter
		for range 5 {
			ws = append(ws, e.wait(l))
		}
		e.eventually("a ticket", func() bool { return len(e.state(l).Queue) > 0 })
		for _, w := range ws {
			w.cancel(errBoom)
		}
		for _, w := range ws {
			w.failed(context.Canceled, errBoom)
		}
		e.queued(l, 0)
		e.alive(h)
		e.release(h)
		e.free()
	}},
	{name: "a wait cancelled at any moment leaves nothing", run: func(e *env) {
		h, l := blocked(e)
		for i := range 30 {
			if _, err := l.Lock(e.within(time.Duration(i) * 100 * time.Microsecond)); !errors.Is(err, context.DeadlineExceeded) {
				e.Errorf("got the error %v", err)
			}
		}
		e.queued(l, 0)
		e.release(h)
		e.free()
	}},
	{name: "an acquire cancelled at any moment leaves nothing", run: func(e *env) {
		l := e.lock(e.client())
		for i := range 30 {
			h, err := l.Lock(e.within(time.Duration(i) * 50 * time.Microsecond))
			switch {
			case err == nil:
				e.release(h)
			case !errors.Is(err, context.DeadlineExceeded):
				e.Errorf("got the error %v", err)
			}
		}
		e.free()
	}},
	{name: "those behind a cancelled waiter go on", run: func(e *env) {
		h, l := blocked(e)
		first := e.wait(l)
		e.queued(l, 1)
		second := e.wait(e.lock(e.client(e.patient())))
		e.queued(l, 2)
		first.cancel(errBoom)
		first.failed(errBoom)
		e.queued(l, 1)
		second.waits()
		e.release(h)
		e.release(second.served())
	}},
}

// blocked returns a hold of the rival, by one client, and what has to wait for it, of another.
func blocked(e *env) (*holdfast.Hold, locker) {
	e.Helper()
	h := e.must(e.rival(e.client()).Lock(e.ctx()))
	return h, e.lock(e.client())
}

func servedOnRelease(e *env, holder, waits *holdfast.Client) {
	e.Helper()
	for range 2 { // the second time the inbox is open already
		h := e.must(e.rival(holder).Lock(e.ctx()))
		w := e.wait(e.lock(waits))
		if holder != waits { // else it may wait in the client
			e.queued(e.lock(waits), 1)
		}
		w.waits()
		e.release(h)
		next := w.served()
		e.alive(next)
		if next.Token() <= h.Token() {
			e.Errorf("token %d after %d", next.Token(), h.Token())
		}
		// A hold that was passed on inside the client has a token between the server's and that of the next grant.
		if s := e.state(e.lock(holder)); len(s.Holders) != 1 || s.Holders[0].Weight != e.kind.weight ||
			s.Holders[0].Token > next.Token() || holder != waits && s.Holders[0].Token != next.Token() {
			e.Errorf("token %d, but the server has %+v", next.Token(), s)
		}
		e.release(next)
	}
}

// servedInOrder lets waiters of two clients arrive one by one, and looks in what order they are served.
func servedInOrder(e *env) {
	clients := []*holdfast.Client{e.client(e.patient()), e.client(e.patient())}
	n := 8
	if e.suite.polling {
		n = 3
	}
	h := e.must(e.lock(clients[0]).Lock(e.ctx()))
	var mu sync.Mutex // guards served
	var served []int
	var wg sync.WaitGroup
	for i := range n {
		w := e.wait(e.lock(clients[i/2%2]))
		e.queued(e.lock(clients[0]), i+1)
		wg.Go(func() {
			<-w.got
			mu.Lock()
			served = append(served, i)
			mu.Unlock()
			if err := w.hold.Release(e.Context()); err != nil {
				e.Errorf("waiter %d: %v, %v", i, w.err, err)
			}
		})
	}
	e.release(h)
	wg.Wait()
	for i, who := range served {
		if i != who {
			e.Fatalf("served in the order %v", served)
		}
	}
}

// everyCall makes every call that sends something, and wants all to fail with these errors.
func everyCall(e *env, l locker, ctx context.Context, want ...error) { //nolint:revive // the context under test, not the call's own
	e.Helper()
	e.fails(want...)(l.Lock(ctx))
	e.fails(want...)(l.TryLock(ctx))
	e.is(l.Do(ctx, func(context.Context) error { e.Error("Do ran"); return nil }), want...)
	_, err := l.Inspect(ctx)
	e.is(err, want...)
	e.is(l.ForceRelease(ctx), want...)
}
