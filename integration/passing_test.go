package integration

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/internal/tenure"
)

// The goroutines of one client pass a mutex on among themselves, without the server.

// A relay is what holders of one name share. The lock under test guards the plain fields: the race detector watches over
// it, too.
type relay struct {
	inside atomic.Int32
	cycles int
	last   int64 // token of the latest hold
	begun  int64 // of those that were passed on
}

// cycle is one hold of m: alone, with a greater token than every hold before, and with a Done and a Context of its own.
func (r *relay) cycle(ctx context.Context, t testing.TB, m *holdfast.Mutex) error {
	h, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	own := r.hold(t, h)
	if err := h.Release(ctx); err != nil {
		return err
	}
	select {
	case <-h.Done():
	default:
		t.Error("a released hold is not done")
	}
	if h.Valid() || !errors.Is(context.Cause(own), holdfast.ErrReleased) {
		t.Errorf("a released hold is valid (%t), or its context goes on: %v", h.Valid(), context.Cause(own))
	}
	return nil
}

// hold is what is done while holding. It returns a context of the hold.
func (r *relay) hold(t testing.TB, h *holdfast.Hold) context.Context {
	if n := r.inside.Add(1); n != 1 {
		t.Errorf("%d inside", n)
	}
	defer r.inside.Add(-1)
	r.cycles++
	if h.Token() <= r.last {
		t.Errorf("token %d after %d", h.Token(), r.last)
	}
	if tenure.PassedOn(h.Token()) {
		r.begun++
	}
	r.last = h.Token()
	own := h.Context(context.Background())
	select {
	case <-h.Done():
		t.Error("done before its release")
	case <-own.Done():
		t.Errorf("its context ended before its release: %v", context.Cause(own))
	default:
	}
	return own
}

// passedOn fails the test unless most holds were passed on.
func (r *relay) passedOn(t testing.TB) {
	t.Helper()
	t.Logf("%d holds, %d of them passed on", r.cycles, r.begun)
	if r.begun < int64(r.cycles)/2 {
		t.Errorf("%d of %d holds were passed on: this proves nothing", r.begun, r.cycles)
	}
}

func TestGoroutinesPassAMutexOnWithoutTheServer(t *testing.T) {
	const goroutines, each = 16, 250
	srv := server.Start(t)
	admin := srv.Client()
	m := newClient(t, srv.Client()).Mutex(unique(t))
	var r relay
	before := scriptsRun(t, admin)
	ctx := within(t, 30*time.Second)
	swarm(t, goroutines, each, func() error { return r.cycle(ctx, t, m) })
	if r.cycles != goroutines*each {
		t.Errorf("%d of %d cycles are there", r.cycles, goroutines*each)
	}
	r.passedOn(t)
	calls := scriptsRun(t, admin) - before
	t.Logf("%d scripts", calls)
	if calls > r.cycles/2 { // two for each if every release goes to the server
		t.Errorf("%d scripts for %d holds", calls, r.cycles)
	}
	fades(t, admin, key(m))
}

// swarm has goroutines do something that often, each until it fails.
func swarm(t testing.TB, goroutines, often int, do func() error) {
	t.Helper()
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range often {
				if err := do(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// hogs pass m on among themselves until stop is called, which waits for them. It returns when the first has had it: else whoever
// comes next may be done before they begin.
func hogs(t testing.TB, r *relay, m *holdfast.Mutex, goroutines int) (stop func()) {
	t.Helper()
	over, end := context.WithCancel(context.Background())
	ctx := within(t, time.Minute)
	var wg sync.WaitGroup
	begun, first := make(chan struct{}), sync.Once{}
	for range goroutines {
		wg.Go(func() {
			for over.Err() == nil {
				err := r.cycle(ctx, t, m)
				first.Do(func() { close(begun) })
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	<-begun
	return func() {
		end()
		wg.Wait()
	}
}

// Somebody of another client waits for two turns, of at most 50 ms, and a hold; for ever if those inside never let go.
func TestHogsOfOneClientLetAnotherIn(t *testing.T) {
	t.Parallel()
	srv := server.Shared(t)
	m := newClient(t, srv.Client()).Mutex(unique(t))
	other := newClient(t, srv.Client()).Mutex(m.Name())
	var r relay
	stop := hogs(t, &r, m, 16)
	var longest time.Duration
	for range 20 {
		began := time.Now()
		if err := r.cycle(within(t, 20*time.Second), t, other); err != nil {
			t.Error(err)
			break
		}
		longest = max(longest, time.Since(began))
	}
	stop()
	r.passedOn(t)
	t.Logf("the longest wait took %v", longest)
	if longest > 2*time.Second {
		t.Errorf("a wait beside the hogs took %v", longest)
	}
}

func TestClientsThatPassOnTakeTurns(t *testing.T) {
	t.Parallel()
	const clients, goroutines = 4, 4
	srv, name := server.Shared(t), unique(t)
	var r relay
	var counts [clients][goroutines]int // each guarded by the lock
	var wg sync.WaitGroup
	over, end := context.WithTimeout(context.Background(), 2*time.Second)
	defer end()
	ctx := within(t, 30*time.Second)
	for c := range clients {
		m := newClient(t, srv.Client()).Mutex(name)
		for g := range goroutines {
			wg.Go(func() {
				for over.Err() == nil {
					if err := r.cycle(ctx, t, m); err != nil {
						t.Error(err)
						return
					}
					counts[c][g]++
				}
			})
		}
	}
	wg.Wait()
	r.passedOn(t)
	least, most := r.cycles, 0
	for _, goroutines := range counts {
		sum := 0
		for _, n := range goroutines {
			sum += n
			if n == 0 {
				t.Error("a goroutine was never served")
			}
		}
		least, most = min(least, sum), max(most, sum)
	}
	t.Logf("holds: %v", counts)
	if most > 5*least {
		t.Errorf("one client has %d holds, another one %d", most, least)
	}
}

// A try is an attempt of its own at the server, which knows of a holder whichever goroutine that is just now.
func TestTryLockDoesNotComeBetween(t *testing.T) {
	t.Parallel()
	srv := server.Shared(t)
	m := newClient(t, srv.Client()).Mutex(unique(t))
	other := newClient(t, srv.Client()).Mutex(m.Name())
	var r relay
	ctx := within(t, 30*time.Second)
	swarm(t, 8, 20, func() error {
		h, err := m.Lock(ctx)
		if err != nil {
			return err
		}
		r.hold(t, h)
		for _, m := range []*holdfast.Mutex{m, other} {
			if _, err := m.TryLock(ctx); !errors.Is(err, holdfast.ErrNotAcquired) {
				t.Errorf("a try beside a hold: %v", err)
			}
		}
		return h.Release(ctx)
	})
	r.passedOn(t)
}
