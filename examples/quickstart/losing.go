package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// errImpatient is why the customer in impatience leaves.
var errImpatient = errors.New("the customer left")

// impatience: every wait ends with its context, promptly, and leaves nothing behind in the queue.
func impatience(ctx context.Context, s *stage) error {
	s.scene("Patience: a wait ends with its context")
	name := s.name("checkout")
	hold, err := s.orders.Mutex(name).Lock(ctx)
	if err != nil {
		return err
	}
	defer hold.Release(ctx)

	const patience = 200 * time.Millisecond
	s.say("orders holds the lock, billing waits with a context of %v and a cause", patience)
	limited, cancel := context.WithTimeoutCause(ctx, patience, errImpatient)
	defer cancel()
	began := time.Now()
	_, err = s.billing.Mutex(name).Lock(limited)
	took := time.Since(began)
	s.check(took < patience+500*time.Millisecond, "after %v: %v", brief(took), err)
	s.check(errors.Is(err, context.DeadlineExceeded) && errors.Is(err, errImpatient),
		"errors.Is finds both context.DeadlineExceeded and the cause")

	left := func() bool {
		state, err := s.orders.Mutex(name).Inspect(ctx)
		return err == nil && state.Held() && len(state.Queue) == 0
	}
	s.check(eventually(ctx, left), "billing has left the queue, orders still holds")
	return nil
}

// loss: a lock can be lost, by force as here, or because Redis lost its data, or was out of reach for a lease.
// The holder is told: its context ends.
func loss(ctx context.Context, s *stage) error {
	s.scene("Loss: a holder that lost its lock is told")
	nightly := s.orders.Mutex(s.name("nightly"))
	var forced time.Time
	var lost, next int64 // tokens

	s.say("orders works under the lock; an operator frees it by force")
	err := nightly.Do(ctx, func(ctx context.Context) error {
		hold, _ := nightly.Held(ctx)
		lost = hold.Token()
		forced = time.Now()
		if err := s.billing.Mutex(nightly.Name()).ForceRelease(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		<-ctx.Done() // a real job passes ctx to all that it calls, and ends with it
		s.check(errors.Is(context.Cause(ctx), holdfast.ErrLost), "its context ended after %v: %v", brief(time.Since(forced)), context.Cause(ctx))
		return nil
	})
	s.check(errors.Is(err, holdfast.ErrLost), "although the job itself reported success, Do returned ErrLost")

	err = s.billing.Mutex(nightly.Name()).Do(ctx, func(ctx context.Context) error {
		hold, _ := s.billing.Mutex(nightly.Name()).Held(ctx)
		next = hold.Token()
		return nil
	})
	if err != nil {
		return err
	}
	s.check(next > lost, "the next holder's token is greater: %d after %d", next, lost)
	return nil
}

// fencing: a paused process may write before it finds out that its lock is gone. A resource that remembers the
// greatest token it has seen, and refuses smaller ones, is safe from that too.
func fencing(ctx context.Context, s *stage) error {
	s.scene("Fencing: what the lock protects refuses a late write")
	const lease = 300 * time.Millisecond
	name := s.name("ledger")
	var book ledger

	s.say("orders takes the lock for %v, not renewed, and falls asleep before it writes", lease)
	hold, err := s.orders.Mutex(name, holdfast.FixedLease(lease)).Lock(ctx)
	if err != nil {
		return err
	}
	<-hold.Done()
	s.check(errors.Is(hold.Err(), holdfast.ErrLost), "its hold ended: %v", hold.Err())

	err = s.billing.Mutex(name).Do(ctx, func(ctx context.Context) error {
		current, _ := s.billing.Mutex(name).Held(ctx)
		return book.write(current.Token(), "billing")
	})
	s.check(err == nil, "billing gets the lock and writes, token and all")
	err = book.write(hold.Token(), "orders")
	s.check(errors.Is(err, errStale), "orders wakes up and writes without a look at its hold: %v", err)
	s.check(book.entry == "billing", "the ledger has the entry of %s", book.entry)
	return nil
}

// errStale is returned by ledger.write.
var errStale = errors.New("stale token")

// ledger is a resource that checks fencing tokens. In SQL: UPDATE … SET token = $1 WHERE token <= $1.
type ledger struct {
	mu    sync.Mutex
	token int64
	entry string
}

func (l *ledger) write(token int64, entry string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if token < l.token {
		return fmt.Errorf("refused, %w: %d after %d", errStale, token, l.token)
	}
	l.token, l.entry = token, entry
	return nil
}
