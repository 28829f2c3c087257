package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/group"
)

// exclusion: two services read, change and write back one counter. Without a lock updates would be lost.
func exclusion(ctx context.Context, s *stage) error {
	s.scene("Exclusion: at most one holder at a time")
	s.say("orders and billing each add 1 to a counter 20 times: read, think for 2 ms, write back")
	const times = 20
	counter := s.name("counter")
	services := []*holdfast.Client{s.orders, s.billing}
	var inside, collisions atomic.Int32

	increment := func(ctx context.Context) error {
		if inside.Add(1) > 1 {
			collisions.Add(1)
		}
		defer inside.Add(-1)
		n, err := s.rdb.Get(ctx, counter).Int()
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		if err := sleep(ctx, 2*time.Millisecond); err != nil {
			return err // the lock was lost: what was read may be out of date
		}
		return s.rdb.Set(ctx, counter, n+1, 0).Err()
	}
	err := group.Each(ctx, len(services), func(ctx context.Context, i int) error {
		for range times {
			if err := services[i].Mutex(counter).Do(ctx, increment); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	n, err := s.rdb.Get(ctx, counter).Int()
	if err != nil {
		return err
	}
	s.check(n == times*len(services), "the counter is at %d: no update was lost", n)
	s.check(collisions.Load() == 0, "met somebody else inside: %d times", collisions.Load())
	return nil
}

// reentry: who holds the lock may take it again, by passing on the context of the hold. The inner function
// makes a Mutex value of its own and need not know whether its caller is inside already.
func reentry(ctx context.Context, s *stage) error {
	s.scene("Re-entry: who passes on the context of a hold may lock again")
	name := s.name("order")
	depth := func(ctx context.Context) int {
		state, err := s.orders.Mutex(name).Inspect(ctx)
		if err != nil || !state.Held() {
			return 0
		}
		return state.Holders[0].Depth
	}
	reserve := func(ctx context.Context) error {
		return s.orders.Mutex(name).Do(ctx, func(ctx context.Context) error {
			s.check(depth(ctx) == 2, "inside of reserve, which locks again with that context, the depth is %d", depth(ctx))
			return nil
		})
	}

	s.say("orders locks %s and calls a function that locks it as well", name)
	err := s.orders.Mutex(name).Do(ctx, func(inner context.Context) error {
		s.check(depth(inner) == 1, "inside of the outer Do the depth is %d", depth(inner))
		if err := reserve(inner); err != nil {
			return err
		}
		s.check(depth(inner) == 1, "after reserve has returned it is %d: still held", depth(inner))
		_, err := s.orders.Mutex(name).TryLock(ctx) // the context from outside: a stranger, in the same client too
		s.check(errors.Is(err, holdfast.ErrNotAcquired), "with a context from outside of the hold: %v", err)
		return nil
	})
	if err != nil {
		return err
	}
	s.check(depth(ctx) == 0, "after the outer Do it is %d: free", depth(ctx))
	return nil
}

// renewal: a lease says how long a hold outlives a client that crashed, not how long a job may take. While the
// client lives, a watchdog renews it.
func renewal(ctx context.Context, s *stage) error {
	s.scene("Renewal: a job may take longer than its lease")
	const lease, work = time.Second, 2500 * time.Millisecond
	report := s.orders.Mutex(s.name("report"), holdfast.Lease(lease))
	hold, err := report.Lock(ctx)
	if err != nil {
		return err
	}
	defer hold.Release(ctx) // works although ctx may be done by then, and does nothing if it was released already

	s.say("orders takes a lock with a lease of %v and works for %v", lease, work)
	err = sleep(hold.Context(ctx), work) // ends early if the lock is lost
	s.check(err == nil && hold.Valid(), "orders still holds it, until %v from now at least", brief(time.Until(hold.Deadline())))
	_, err = s.billing.Mutex(report.Name()).TryLock(ctx)
	s.check(errors.Is(err, holdfast.ErrNotAcquired), "billing tries: %v", err)

	if err := hold.Release(ctx); err != nil {
		return err
	}
	next, err := s.billing.Mutex(report.Name()).TryLock(ctx)
	s.check(err == nil, "after the release billing gets it at once")
	if err != nil {
		return err
	}
	return next.Release(ctx)
}

// handover: a waiter does not poll its way in. The release grants it the lock and says so in a message.
func handover(ctx context.Context, s *stage) error {
	s.scene("Hand-over: a release wakes the waiter")
	name := s.name("stock")
	hold, err := s.orders.Mutex(name).Lock(ctx)
	if err != nil {
		return err
	}
	defer hold.Release(ctx)

	s.say("orders holds the lock, billing waits for it, orders releases")
	granted := make(chan error, 2)
	go func() {
		granted <- s.billing.Mutex(name).Do(ctx, func(context.Context) error {
			granted <- nil
			return nil
		})
	}()
	queued := func() bool {
		state, err := s.orders.Mutex(name).Inspect(ctx)
		return err == nil && len(state.Queue) == 1 && state.Queue[0].Label == "billing"
	}
	s.check(eventually(ctx, queued), "Inspect shows billing in the queue")

	released := time.Now()
	if err := hold.Release(ctx); err != nil {
		return err
	}
	if err := <-granted; err != nil {
		return err
	}
	took := time.Since(released)
	s.check(took < time.Second, "billing was inside %v after orders began to release", brief(took))
	return <-granted // Do's own result
}
