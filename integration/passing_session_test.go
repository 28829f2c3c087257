package integration

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/internal/tenure"
)

// passedFrom tells whether a hold was passed on from the one before.
func passedFrom(before, h *holdfast.Hold) bool {
	return h.Token() > before.Token() && tenure.PassedOn(h.Token())
}

// behind has a goroutine of the same client wait for m, which is held.
func behind(ctx context.Context, t testing.TB, m *holdfast.Mutex) <-chan result {
	t.Helper()
	ctx, begun := observed(ctx)
	ch := lockAside(ctx, m)
	select {
	case <-begun:
	case <-time.After(10 * time.Second):
		t.Fatal("the goroutine does not wait")
	}
	return ch
}

// What somebody does with the context of a hold that has ended and was passed on is not inside the next hold.
func TestContextOfAHoldThatWasPassedOnIsOutsideTheNext(t *testing.T) {
	t.Parallel()
	client := newClient(t, server.Shared(t).Client())
	m := client.Mutex(unique(t))
	first := locked(t, m)
	stale := first.Context(context.Background())
	next := behind(within(t, 10*time.Second), t, m)
	released(t, first)
	second := served(t, 10*time.Second, next)
	if !passedFrom(first, second) {
		t.Errorf("not passed on: token %d after %d", second.Token(), first.Token())
	}
	if _, err := m.Lock(stale); !errors.Is(err, holdfast.ErrReleased) {
		t.Errorf("with the context of the hold before: %v", err)
	}
	if _, ok := m.Held(stale); ok {
		t.Error("the context of the hold before carries a hold")
	}
	detached, cancel := context.WithTimeout(context.WithoutCancel(stale), 50*time.Millisecond)
	defer cancel()
	if h, err := m.Lock(detached); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with the detached context of the hold before: %v, %v", h, err)
	}
	if err := first.Release(context.Background()); !errors.Is(err, holdfast.ErrReleased) {
		t.Errorf("a second release: %v", err)
	}
	if err := first.Extend(context.Background()); !errors.Is(err, holdfast.ErrReleased) {
		t.Errorf("an extension of the hold before: %v", err)
	}
	if !second.Valid() {
		t.Errorf("the next hold: %v", second.Err())
	}
	if state, err := m.Inspect(within(t, 5*time.Second)); err != nil || len(state.Holders) != 1 || len(state.Queue) != 0 {
		t.Errorf("the server knows %+v (%v)", state, err)
	}
	released(t, second)
}

// A passed hold is re-entered like any other, and is passed on when the last of its holds has been released.
func TestPassedHoldIsReenteredAndPassedOnAfterItsLastRelease(t *testing.T) {
	t.Parallel()
	client := newClient(t, server.Shared(t).Client())
	m := client.Mutex(unique(t))
	ctx := within(t, 20*time.Second)
	first := locked(t, m)
	waiter := behind(ctx, t, m)
	released(t, first)
	outer := served(t, 10*time.Second, waiter)
	inner, err := m.Lock(outer.Context(ctx))
	if err != nil {
		t.Fatal(err)
	}
	innermost, err := m.TryLock(inner.Context(ctx))
	if err != nil {
		t.Fatal(err)
	}
	if inner.Token() != outer.Token() || innermost.Token() != outer.Token() {
		t.Errorf("tokens %d and %d inside of %d", inner.Token(), innermost.Token(), outer.Token())
	}
	next := behind(ctx, t, m)
	released(t, outer)
	released(t, innermost)
	select {
	case r := <-next:
		t.Fatalf("passed on inside of a hold: %v, %v", r.hold, r.err)
	case <-time.After(30 * time.Millisecond):
	}
	if !inner.Valid() || outer.Valid() || innermost.Valid() {
		t.Errorf("of three nested holds: outer %v, inner %v, innermost %v", outer.Err(), inner.Err(), innermost.Err())
	}
	released(t, inner)
	last := served(t, 10*time.Second, next)
	if last.Token() <= inner.Token() || inner.Valid() {
		t.Errorf("token %d after %d, which ends with %v", last.Token(), inner.Token(), inner.Err())
	}
	released(t, last)
}

// Somebody who asked for other terms, or for a tenure of his own, is given that.
func TestTenureIsNotPassedOnToOtherTerms(t *testing.T) {
	t.Parallel()
	client := newClient(t, server.Shared(t).Client())
	fixed, bounded := holdfast.FixedLease(20*time.Second), holdfast.MaxHold(20*time.Second)
	for name, c := range map[string]struct {
		first, second []holdfast.LockOption
		passed        bool
	}{
		"the same lease":     {[]holdfast.LockOption{holdfast.Lease(20 * time.Second)}, []holdfast.LockOption{holdfast.Lease(20 * time.Second)}, true},
		"another lease":      {nil, []holdfast.LockOption{holdfast.Lease(20 * time.Second)}, false},
		"fixed after leased": {[]holdfast.LockOption{holdfast.Lease(20 * time.Second)}, []holdfast.LockOption{fixed}, false},
		"leased after fixed": {[]holdfast.LockOption{fixed}, []holdfast.LockOption{holdfast.Lease(20 * time.Second)}, false},
		"both fixed":         {[]holdfast.LockOption{fixed}, []holdfast.LockOption{fixed}, false},
		"bounded":            {nil, []holdfast.LockOption{bounded}, false},
		"both bounded":       {[]holdfast.LockOption{bounded}, []holdfast.LockOption{bounded}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := client.Mutex(unique(t), c.first...)
			first := locked(t, m)
			next := behind(within(t, 10*time.Second), t, client.Mutex(m.Name(), c.second...))
			released(t, first)
			second := served(t, 10*time.Second, next)
			if passed := passedFrom(first, second); passed != c.passed {
				t.Errorf("passed on: %t", passed)
			}
			if left := time.Until(second.Deadline()); left > 20*time.Second {
				t.Errorf("its deadline is in %v", left)
			}
			released(t, second)
		})
	}
}

// Somebody who wants replicas to acknowledge gets nothing that none has.
func TestTenureIsNotPassedOnWithoutItsReplicas(t *testing.T) {
	t.Parallel()
	client := newClient(t, server.Shared(t).Client())
	m := client.Mutex(unique(t))
	first := locked(t, m)
	next := behind(within(t, time.Second), t, client.Mutex(m.Name(), holdfast.Replicas(1, 50*time.Millisecond)))
	released(t, first)
	if r := <-next; r.err == nil {
		t.Errorf("it has %v without a replica", r.hold)
	}
	eventually(t, 10*time.Second, "the name is free", func() bool {
		h, err := m.TryLock(within(t, 5*time.Second))
		if err != nil {
			return false
		}
		released(t, h)
		return true
	})
}

// Somebody re-enters just when the hold is released and passed on: he is inside of that hold, and it is not passed on before
// he has left, or he waits like anybody.
func TestReentryThatRacesWithThePassIsInsideOneHold(t *testing.T) {
	t.Parallel()
	m := newClient(t, server.Shared(t).Client()).Mutex(unique(t))
	ctx := within(t, 30*time.Second)
	reentered := 0
	for range 300 {
		h := locked(t, m)
		next := behind(ctx, t, m)
		inside := context.WithoutCancel(h.Context(ctx))
		begin, again := make(chan struct{}), make(chan result, 1)
		go func() {
			<-begin
			inner, err := m.Lock(inside)
			again <- result{inner, err}
		}()
		close(begin)
		released(t, h)
		for range 2 { // in whichever order: nobody is beside the other
			var r result
			select {
			case r = <-again:
			case r = <-next:
			}
			if r.err != nil {
				if errors.Is(r.err, holdfast.ErrReleased) {
					continue // too late to join, and told so
				}
				t.Fatal(r.err)
			}
			if r.hold.Token() == h.Token() {
				reentered++
			}
			select {
			case other := <-again:
				if other.err == nil {
					t.Fatalf("%v beside %v", other.hold, r.hold)
				}
				again <- other
			case other := <-next:
				t.Fatalf("%v beside %v", other.hold, r.hold)
			default:
			}
			released(t, r.hold)
		}
	}
	t.Logf("%d of 300 were inside", reentered)
}
