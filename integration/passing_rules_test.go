package integration

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/fault"
	"github.com/holdfast-go/holdfast/integration/server"
)

func TestPassedHoldIsNotReentered(t *testing.T) {
	t.Parallel()
	m := newClient(t, server.Shared(t).Client()).Mutex(unique(t))
	ctx := within(t, 30*time.Second)
	a := locked(t, m)
	ctxA := a.Context(context.Background())
	second := behind(ctx, t, m)
	released(t, a)
	b := served(t, 10*time.Second, second)
	if !passedFrom(a, b) {
		t.Errorf("not passed on: token %d after %d", b.Token(), a.Token())
	}
	_, err := m.Lock(ctxA)
	expect(t, "Lock inside a hold that is over", err, holdfast.ErrReleased)
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctxA), 100*time.Millisecond)
	defer cancel()
	_, err = m.Lock(detached)
	expect(t, "Lock with what is left of its context", err, context.DeadlineExceeded)

	nested, err := m.Lock(b.Context(ctx))
	if err != nil {
		t.Fatal(err)
	}
	if nested.Token() != b.Token() {
		t.Errorf("token %d inside of %d", nested.Token(), b.Token())
	}
	third := behind(ctx, t, m)
	released(t, b)
	select {
	case r := <-third:
		t.Fatalf("beside a nested hold: %v, %v", r.hold, r.err)
	case <-time.After(100 * time.Millisecond):
	}
	if err := nested.Err(); err != nil {
		t.Errorf("the nested hold: %v", err)
	}
	released(t, nested)
	c := served(t, 10*time.Second, third)
	if c.Token() <= b.Token() {
		t.Errorf("token %d after %d", c.Token(), b.Token())
	}
	released(t, c)
}

// A guarded is a resource that rejects smaller tokens than it has seen. It knows whose hold was the latest one.
type guarded struct {
	mu              sync.Mutex
	token           int64
	latest          *holdfast.Hold
	writes, rejects int
}

// enter takes in that h has been granted, to a goroutine of the same client as all others. A hold that is valid after
// another was valid excludes it, or the two overlap: neither becomes valid again.
func (g *guarded) enter(t testing.TB, h *holdfast.Hold) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if last := g.latest; last != nil && last.Valid() && h.Valid() {
		t.Errorf("%v beside %v", h, last)
	}
	g.latest = h
}

func (g *guarded) write(t testing.TB, h *holdfast.Hold) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case h.Token() >= g.token:
		g.token = h.Token()
		g.writes++
	case h.Valid():
		t.Errorf("%v is valid, after token %d", h, g.token)
	default:
		g.rejects++
	}
}

func TestPassedMutexLostSendsItsWaitersBack(t *testing.T) {
	t.Parallel()
	const goroutines = 8
	srv := server.Shared(t)
	rdb, lease := srv.Client(), holdfast.Lease(time.Second) // a renewal notices a DEL within a third of it
	m := newClient(t, srv.Client()).Mutex(unique(t), lease)
	stranger := newClient(t, srv.Client()).Mutex(m.Name())
	var g guarded
	var lost, counts [goroutines]atomic.Int64
	over, end := context.WithCancel(context.Background())
	ctx := within(t, 40*time.Second)
	cycle := func(i int) error {
		h, err := m.Lock(ctx)
		if err != nil {
			return err
		}
		done := h.Done()
		g.enter(t, h)
		for range 3 {
			g.write(t, h)
			time.Sleep(200 * time.Microsecond)
		}
		switch err := h.Release(ctx); {
		case errors.Is(err, holdfast.ErrLost):
			lost[i].Add(1)
		case err != nil:
			return err
		default:
			counts[i].Add(1)
		}
		select {
		case <-done:
			return nil
		case <-time.After(5 * time.Second):
			return errors.New("a hold that has ended is not done")
		}
	}
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() {
			for over.Err() == nil {
				if err := cycle(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	onward := func() { // everybody is served again
		t.Helper()
		var before [goroutines]int64
		for i := range before {
			before[i] = counts[i].Load()
		}
		eventually(t, 20*time.Second, "everybody goes on", func() bool {
			for i := range before {
				if counts[i].Load() <= before[i] {
					return t.Failed()
				}
			}
			return true
		})
	}
	defer func() {
		end()
		wg.Wait()
		losses := int64(0)
		for i := range lost {
			losses += lost[i].Load()
		}
		t.Logf("%d writes, %d rejected, %d holds lost", g.writes, g.rejects, losses)
	}()
	for range 6 {
		onward()
		must(t, stranger.ForceRelease(ctx))
		onward()
		must(t, rdb.Del(ctx, key(m)).Err())
	}
	onward()
}

func TestPassedMutexForgetsNobodyWhoGivesUp(t *testing.T) {
	t.Parallel()
	const goroutines = 12
	srv := server.Shared(t)
	m := newClient(t, srv.Client()).Mutex(unique(t))
	var r relay
	var gaveUp, served atomic.Int64
	over, end := context.WithTimeout(context.Background(), 1500*time.Millisecond)
	defer end()
	long := within(t, 30*time.Second)
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() {
			for n := i; over.Err() == nil; n++ {
				ctx, cancel := long, context.CancelFunc(func() {})
				if i%3 > 0 { // two of three
					ctx, cancel = context.WithTimeout(long, time.Duration(1+n%3)*time.Millisecond)
				}
				h, err := m.Lock(ctx)
				cancel()
				switch {
				case err == nil:
					r.hold(t, h)
					served.Add(1)
					if err := h.Release(long); err != nil {
						t.Error(err)
					}
				case i%3 > 0 && errors.Is(err, context.DeadlineExceeded):
					gaveUp.Add(1)
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d were served, %d gave up", served.Load(), gaveUp.Load())
	if gaveUp.Load() == 0 || served.Load() == 0 {
		t.Error("this proves nothing")
	}
	eventually(t, 5*time.Second, "nobody holds, nobody waits", func() bool {
		state, err := m.Inspect(within(t, 5*time.Second))
		return err == nil && !state.Held() && len(state.Queue) == 0
	})
	free(t, m)
}

func TestPassedOnlyOnTheSameTerms(t *testing.T) {
	t.Parallel()
	client := newClient(t, server.Shared(t).Client())
	for name, c := range map[string]struct {
		option holdfast.LockOption
		lease  time.Duration
	}{
		"FixedLease":    {holdfast.FixedLease(10 * time.Second), 10 * time.Second},
		"MaxHold":       {holdfast.MaxHold(10 * time.Second), 10 * time.Second},
		"another Lease": {holdfast.Lease(10 * time.Second), 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := client.Mutex(unique(t))
			other := client.Mutex(m.Name(), c.option)
			first := locked(t, m)
			next := behind(within(t, 20*time.Second), t, other)
			released(t, first)
			second := served(t, 10*time.Second, next)
			if left := time.Until(second.Deadline()); left > c.lease {
				t.Errorf("its deadline is in %v", left)
			}
			if passedFrom(first, second) {
				t.Errorf("passed on: token %d after %d", second.Token(), first.Token())
			}
			holder(t, m, second, 1) // with its token
			released(t, second)
		})
	}
}

// Replies are late or lost along with their connections. No lease runs out: no hold may get lost.
func TestPassedUnderABadNetwork(t *testing.T) {
	t.Parallel()
	const goroutines = 16
	srv := server.Shared(t)
	proxy := fault.NewProxy(t, srv.Addr())
	m := newClient(t, srv.Client(func(o *redis.Options) {
		o.Addr, o.ReadTimeout = proxy.Addr(), impatient
	})).Mutex(unique(t))
	over, end := context.WithTimeout(context.Background(), 3*time.Second)
	defer end()
	var wg sync.WaitGroup
	dropped, late := 0, 0
	wg.Go(func() {
		for over.Err() == nil {
			<-time.After(150 * time.Millisecond) // without peace nothing gets through: attempts pause between failures
			drop := proxy.DropRepliesAndClose(1, fault.Script())
			<-time.After(30 * time.Millisecond)
			drop.Remove()
			delay := proxy.DelayReplies(2, 50*time.Millisecond, fault.Script())
			<-time.After(30 * time.Millisecond)
			delay.Remove()
			dropped += drop.Hits()
			late += delay.Hits()
		}
	})
	var r relay
	var done atomic.Int64
	guard := 0 // under the lock
	ctx := within(t, 40*time.Second)
	for range goroutines {
		wg.Go(func() {
			for over.Err() == nil {
				h, err := m.Lock(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				own := r.hold(t, h)
				guard++
				// A release that nobody confirms goes on in the background: the hold has ended all the same.
				if err := h.Release(ctx); err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
					t.Errorf("release: %v", err)
				}
				if !errors.Is(context.Cause(own), holdfast.ErrReleased) || stays(h.Done(), time.Second) {
					t.Errorf("a released hold goes on, or its context: %v", context.Cause(own))
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	t.Logf("%d holds, %d of them passed on; %d replies lost, %d late", r.cycles, r.begun, dropped, late)
	if n := int(done.Load()); guard != n || r.cycles != n {
		t.Errorf("%d counted under the lock, %d holds", guard, n)
	}
	if dropped == 0 || late == 0 || guard <= goroutines {
		t.Error("this proves nothing")
	}
}
