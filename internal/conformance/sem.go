package conformance

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// semScenarios is what only a semaphore promises: weights and capacities.
var semScenarios = []scenario{
	{name: "a bad number is refused before anything is sent", run: func(e *env) {
		c, sent := e.countedClient()
		s := c.Semaphore(e.name, 3)
		for _, n := range []int{0, -1, 4, -1 << 40, 1 << 40} {
			e.fails(holdfast.ErrInvalid)(s.Acquire(e.ctx(), n))
			e.fails(holdfast.ErrInvalid)(s.TryAcquire(e.ctx(), n))
			e.is(s.Do(e.ctx(), n, func(context.Context) error { e.Errorf("Do ran with %d", n); return nil }), holdfast.ErrInvalid)
		}
		for _, capacity := range []int{0, -1, 1<<30 + 1} {
			everyCall(e, takeOf(1, capacity)(c, e.name), e.ctx(), holdfast.ErrInvalid)
		}
		if n := sent.n.Load(); n != 0 {
			e.Errorf("%d commands were sent", n)
		}
	}},
	{name: "weights add up to the capacity", run: func(e *env) {
		one, two := e.client().Semaphore(e.name, 5), e.client().Semaphore(e.name, 5)
		a, b := e.must(one.TryAcquire(e.ctx(), 3)), e.must(two.TryAcquire(e.ctx(), 2))
		e.fails(holdfast.ErrNotAcquired)(one.TryAcquire(e.ctx(), 1))
		usage, err := two.Inspect(e.ctx())
		if err != nil || usage.InUse != 5 || usage.Free != 0 || len(usage.Holders) != 2 {
			e.Errorf("usage %+v, error %v", usage, err)
		}
		e.release(a)
		e.fails(holdfast.ErrNotAcquired)(two.TryAcquire(e.ctx(), 4))
		c := e.must(one.TryAcquire(e.ctx(), 3))
		e.release(b)
		e.release(c)
	}},
	{name: "a nested acquire takes more", run: func(e *env) {
		s := e.client().Semaphore(e.name, 3)
		outer := e.must(s.Acquire(e.ctx(), 1))
		ctx := outer.Context(e.ctx())
		inner := e.must(s.Acquire(ctx, 1))
		if usage, err := s.Inspect(e.ctx()); err != nil || usage.InUse != 2 || usage.Free != 1 || inner.Token() <= outer.Token() {
			e.Errorf("usage %+v, tokens %d and %d, error %v", usage, outer.Token(), inner.Token(), err)
		}
		if h, held := s.Held(inner.Context(ctx)); !held || h.Token() != inner.Token() {
			e.Errorf("Held found %v", h)
		}
		e.fails(holdfast.ErrNotAcquired)(s.TryAcquire(inner.Context(ctx), 2))
		e.release(outer)
		e.alive(inner)
		e.release(inner)
	}},
	{name: "a big head is not overtaken", run: func(e *env) {
		one, two := e.client(e.patient()), e.client(e.patient())
		s := two.Semaphore(e.name, 3)
		h := e.must(one.Semaphore(e.name, 3).Acquire(e.ctx(), 1))
		big := e.wait(takeOf(3, 3)(two, e.name))
		e.queued(e.lock(one), 1)
		e.fails(holdfast.ErrNotAcquired)(s.TryAcquire(e.ctx(), 1)) // although two are free
		small := []*waiter{e.wait(e.lock(one)), e.wait(e.lock(two))}
		e.queued(e.lock(one), 3)
		e.release(h)
		got := big.served()
		for _, w := range small {
			w.waits()
		}
		e.release(got)
		for _, w := range small {
			defer e.release(w.served())
		}
	}},
	{name: "a big head that gives up lets small ones in", run: func(e *env) {
		one, two := e.client(e.patient()), e.client(e.patient())
		h := e.must(e.lock(one).Lock(e.ctx()))
		big := e.wait(takeOf(3, 3)(two, e.name))
		e.queued(e.lock(one), 1)
		small := []*waiter{e.wait(e.lock(one)), e.wait(e.lock(two))}
		e.queued(e.lock(one), 3)
		big.cancel(errBoom)
		big.failed(context.Canceled, errBoom)
		for _, w := range small {
			e.release(w.served())
		}
		e.alive(h)
		e.release(h)
	}},
	{name: "capacities two and five hold side by side", run: func(e *env) {
		two, five := e.client(e.patient()).Semaphore(e.name, 2), e.client(e.patient()).Semaphore(e.name, 5)
		a := e.must(five.TryAcquire(e.ctx(), 3))
		e.fails(holdfast.ErrNotAcquired)(two.TryAcquire(e.ctx(), 1))
		b := e.must(five.TryAcquire(e.ctx(), 2))
		e.fails(holdfast.ErrNotAcquired)(five.TryAcquire(e.ctx(), 1))
		if usage, err := two.Inspect(e.ctx()); err != nil || usage.InUse != 5 || usage.Free != 0 {
			e.Errorf("usage %+v, error %v", usage, err)
		}
		w := e.wait(locker{Lock: func(ctx context.Context) (*holdfast.Hold, error) { return two.Acquire(ctx, 2) }})
		e.queued(e.lock(e.client()), 1)
		e.release(b)
		e.queued(e.lock(e.client()), 1) // three are in use: too many for its two
		w.waits()
		e.release(a)
		c := w.served()
		e.fails(holdfast.ErrNotAcquired)(two.TryAcquire(e.ctx(), 1))
		d := e.must(five.TryAcquire(e.ctx(), 3))
		e.release(c)
		e.release(d)
	}},
}

var semCrowd = []scenario{{name: "a crowd of all weights stays within its capacities", run: weights}}

// weights has goroutines take 1 to 5 of five, and 1 to 2 of two, at the same time.
func weights(e *env) {
	goroutines, cycles := 20, 20
	if e.suite.polling {
		goroutines, cycles = 4, 2
	}
	clients := []*holdfast.Client{e.client(), e.client()}
	ctx, end := e.ctx(), time.Now().Add(enough)
	in := census{weights: map[*holdfast.Hold][2]int{}}
	var wg sync.WaitGroup
	for i := range goroutines {
		capacity := 5 - i%2*3
		s := clients[i/2%2].Semaphore(e.name, capacity)
		wg.Go(func() {
			for c := range cycles {
				if c > 0 && time.Now().After(end) {
					return
				}
				n := (i+c)%capacity + 1
				err := s.Do(ctx, n, func(ctx context.Context) error {
					h, _ := s.Held(ctx)
					own := [2]int{n, 0}
					if capacity == 2 {
						own[1] = n
					}
					if used := in.visit(h, own); used[0] > 5 || used[1] > 2 {
						e.Errorf("in use are %d of 5, %d of 2 by those who say two", used[0], used[1])
					}
					return nil
				})
				if err != nil {
					e.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
