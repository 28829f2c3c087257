package integration

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/fault"
	"github.com/holdfast-go/holdfast/integration/server"
)

// A tenure that is passed on is lost like any other: whoever has it just then is told, and those who wait go on with
// another tenure.

// believers watches over the holds of one name: never are two valid at once, and what they protect sees no smaller token after
// a greater one.
type believers struct {
	guarded resource
	mu      sync.Mutex // guards what follows
	latest  *holdfast.Hold
	n       int
}

func (b *believers) enter(t testing.TB, h *holdfast.Hold) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.latest != nil && b.latest.Valid() && h.Valid() {
		t.Errorf("%v and %v are valid at once", b.latest, h)
	}
	if h.Valid() && !b.guarded.write(h.Token()) && h.Valid() {
		t.Errorf("%v is refused by what it protects", h)
	}
	b.latest = h
	b.n++
}

func (b *believers) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.n
}

// A victim is the goroutine that keeps its hold until it is told of the loss.
func TestLossOfATenureThatIsPassedOn(t *testing.T) {
	const lease = 1500 * time.Millisecond
	for name, lose := range map[string]func(*testing.T, *server.Server, *holdfast.Mutex, *holdfast.Hold){
		"forced": func(t *testing.T, _ *server.Server, m *holdfast.Mutex, _ *holdfast.Hold) {
			must(t, m.ForceRelease(within(t, 10*time.Second)))
		},
		"deleted": func(t *testing.T, srv *server.Server, m *holdfast.Mutex, _ *holdfast.Hold) {
			must(t, srv.Client().Del(t.Context(), key(m)).Err())
		},
		"paused": func(_ *testing.T, srv *server.Server, _ *holdfast.Mutex, h *holdfast.Hold) {
			srv.Pause()
			defer srv.Resume()
			<-h.Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := server.Start(t)
			m := newClient(t, srv.Client()).Mutex(unique(t), holdfast.Lease(lease))
			stranger := newClient(t, srv.Client()).Mutex(m.Name())
			ctx := within(t, 40*time.Second)
			first := locked(t, m)
			waiters := make([]<-chan result, 8)
			for i := range waiters {
				waiters[i] = behind(ctx, t, m)
			}
			released(t, first)
			victim := served(t, 10*time.Second, waiters[0])
			if !passedFrom(first, victim) {
				t.Errorf("not passed on: token %d after %d", victim.Token(), first.Token())
			}
			var b believers
			b.enter(t, victim)
			lose(t, srv, stranger, victim)
			told(t, 10*time.Second, victim)
			expect(t, "release", victim.Release(ctx), holdfast.ErrLost)
			for _, w := range waiters[1:] {
				h := served(t, 20*time.Second, w)
				b.enter(t, h)
				released(t, h)
			}
			if b.guarded.write(victim.Token()) {
				t.Error("what they protect takes the token that was lost")
			}
			eventually(t, 10*time.Second, "the name is free", func() bool { return isFree(t, stranger) })
		})
	}
}

// Losses at any moment of a turn.
func TestStormOfLossesWhileAMutexIsPassedOn(t *testing.T) {
	t.Parallel()
	srv := server.Shared(t)
	name := unique(t)
	admin := newClient(t, srv.Client()).Mutex(name)
	m := newClient(t, srv.Client()).Mutex(name, holdfast.Lease(time.Second))
	over, end := context.WithCancel(context.Background())
	ctx := within(t, 40*time.Second)
	var b believers
	var lost atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for over.Err() == nil {
				h, err := m.Lock(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				b.enter(t, h)
				if rand.IntN(100) == 0 {
					time.Sleep(2 * time.Millisecond)
				}
				switch err := h.Release(ctx); {
				case errors.Is(err, holdfast.ErrLost):
					lost.Add(1)
				case err != nil:
					t.Error(err)
				}
			}
		})
	}
	for i := range 30 {
		before := b.count()
		if i%2 == 0 {
			must(t, admin.ForceRelease(ctx))
		} else {
			must(t, srv.Client().Del(ctx, key(admin)).Err())
		}
		eventually(t, 20*time.Second, "the others go on", func() bool { return b.count() > before+20 })
	}
	end()
	wg.Wait()
	t.Logf("%d holds, %d lost", b.count(), lost.Load())
	eventually(t, 10*time.Second, "the name is free", func() bool { return isFree(t, admin) })
}

// Waits that are given up at any moment, that of the pass included, leave nothing behind, and nobody else is forgotten.
func TestWaitsGivenUpWhileAMutexIsPassedOn(t *testing.T) {
	leavesNothing(t)
	srv := server.Start(t)
	m := newClient(t, srv.Client()).Mutex(unique(t))
	over, end := context.WithTimeout(context.Background(), 2*time.Second)
	defer end()
	var r relay
	var served, gaveUp atomic.Int64
	var wg sync.WaitGroup
	for g := range 12 {
		wg.Go(func() {
			for over.Err() == nil {
				patience := time.Duration(rand.IntN(3000)) * time.Microsecond
				if g < 2 {
					patience = 20 * time.Second
				}
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				switch err := r.cycle(ctx, t, m); {
				case err == nil:
					served.Add(1)
				case g < 2 || !errors.Is(err, context.DeadlineExceeded):
					t.Error(err)
				default:
					gaveUp.Add(1)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	r.passedOn(t)
	t.Logf("%d holds, %d waits given up", served.Load(), gaveUp.Load())
	if served.Load() < 200 || gaveUp.Load() < 50 {
		t.Errorf("%d holds, %d waits given up: this proves nothing", served.Load(), gaveUp.Load())
	}
	eventually(t, 5*time.Second, "the name is free", func() bool { return isFree(t, m) })
	fades(t, srv.Client(), key(m))
}

// Close ends what is passed on, and those who wait for it.
func TestCloseWhileAMutexIsPassedOn(t *testing.T) {
	t.Parallel()
	srv := server.Shared(t)
	stranger := newClient(t, srv.Client()).Mutex(unique(t))
	for range 5 {
		client := newClient(t, srv.Client())
		m := client.Mutex(stranger.Name())
		var b believers
		var wg sync.WaitGroup
		for range 12 {
			wg.Go(func() {
				for {
					h, err := m.Lock(context.Background())
					if err == nil {
						b.enter(t, h)
						err = h.Release(context.Background())
					}
					if errors.Is(err, holdfast.ErrClosed) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		eventually(t, 20*time.Second, "some holds", func() bool { return b.count() > 100 })
		must(t, client.Close(within(t, 10*time.Second)))
		wg.Wait()
		free(t, stranger)
	}
}

// Lost answers, cut and silent connections: what is believed stays in order.
func TestPassingOnOverAFaultyNetwork(t *testing.T) {
	t.Parallel()
	srv := server.Shared(t)
	name := unique(t)
	proxy := fault.NewProxy(t, srv.Addr())
	over, end := context.WithTimeout(context.Background(), 3*time.Second)
	defer end()
	var mu sync.Mutex // guards seen
	var seen []sighting
	var wg sync.WaitGroup
	for range 2 {
		m := newClient(t, throughProxy(t, proxy)).Mutex(name, holdfast.Lease(historyLease))
		for range 6 {
			wg.Go(func() {
				for over.Err() == nil {
					ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
					s, err := believe(ctx, m)
					cancel()
					if err != nil && !errors.Is(err, holdfast.ErrLost) && !errors.Is(err, holdfast.ErrUnavailable) {
						t.Error(err)
						return
					}
					mu.Lock()
					seen = append(seen, s)
					mu.Unlock()
				}
			})
		}
	}
	rules := disturb(proxy, 1)
	wg.Wait()
	faults := 0
	for _, r := range rules {
		faults += r.Answered()
	}
	t.Logf("%d holds, %d faults", len(seen), faults)
	if len(seen) < 100 || faults < 5 {
		t.Errorf("%d holds, %d faults: this proves nothing", len(seen), faults)
	}
	checkTokenOrder(t, seen)
	proxy.Heal()
	eventually(t, 10*time.Second, "the name is free", func() bool { return isFree(t, newClient(t, srv.Client()).Mutex(name)) })
}

// believe is one hold.
func believe(ctx context.Context, m *holdfast.Mutex) (s sighting, err error) {
	h, err := m.Lock(ctx)
	if err != nil {
		return s, err
	}
	s.Held, s.Token = monotonic(), h.Token()
	time.Sleep(time.Duration(rand.IntN(200)) * time.Microsecond)
	s.Deadline = monotonic() + time.Until(h.Deadline()).Nanoseconds()
	s.Left = monotonic()
	return s, h.Release(ctx)
}

// A fence is what a lock protects, shared by all: it refuses smaller tokens than it has seen, and remembers which tenures
// had which.
type fence struct {
	mu       sync.Mutex // guards what follows
	seen     int64
	refused  int
	tenures  map[string]*tenured // by owner
	sessions int
}

// tenured is what was handed out to the holders of one tenure.
type tenured struct {
	owner       string
	first, last int64 // tokens
}

func (f *fence) write(h *holdfast.Hold, owner string) {
	token := h.Token()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sessions++
	if token < f.seen {
		f.refused++
	}
	f.seen = max(f.seen, token)
	if of := f.tenures[owner]; of != nil {
		of.first, of.last = min(of.first, token), max(of.last, token)
		return
	}
	if f.tenures == nil {
		f.tenures = make(map[string]*tenured)
	}
	f.tenures[owner] = &tenured{owner, token, token}
}

// ownerOf is the tenure of a hold, as the server knows it.
func ownerOf(h *holdfast.Hold) string {
	for _, a := range h.LogValue().Group() {
		if a.Key == "owner" {
			return a.Value.String()
		}
	}
	return ""
}

// check makes sure that each tenure's tokens are greater than all of every tenure before, whenever they were handed out.
func (f *fence) check(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	ordered := slices.SortedFunc(maps.Values(f.tenures), func(a, b *tenured) int { return cmp.Compare(a.first, b.first) })
	overtaken := 0
	for i := 1; i < len(ordered); i++ {
		if before, after := ordered[i-1], ordered[i]; before.last >= after.first {
			overtaken++
			t.Errorf("tenure %s had tokens %d to %d, beside %d of tenure %s", before.owner, before.first, before.last, after.first, after.owner)
		}
	}
	t.Logf("%d holds of %d tenures, %d writes refused, %d tenures overtaken", f.sessions, len(ordered), f.refused, overtaken)
	if f.sessions < 5*len(ordered) || f.refused < 10 {
		t.Error("this proves nothing")
	}
}

// A client that does not know yet that its tenure is gone goes on passing it on. None of its tokens may be greater than one of
// whoever was granted the name since.
func TestTokensStayInOrderThoughTheServerForgets(t *testing.T) {
	t.Parallel()
	srv := server.Shared(t)
	name := unique(t)
	over, end := context.WithTimeout(context.Background(), 3*time.Second)
	defer end()
	ctx := within(t, 40*time.Second)
	var f fence
	hold := func(lock func(context.Context) (*holdfast.Hold, error)) {
		h, err := lock(ctx)
		if errors.Is(err, holdfast.ErrNotAcquired) {
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		f.write(h, ownerOf(h))
		if err := h.Release(ctx); err != nil && !errors.Is(err, holdfast.ErrLost) {
			t.Error(err)
		}
	}
	var wg sync.WaitGroup
	for range 2 {
		m := newClient(t, srv.Client()).Mutex(name, holdfast.Lease(time.Second))
		for range 8 {
			wg.Go(func() {
				for over.Err() == nil && !t.Failed() {
					hold(m.Lock)
				}
			})
		}
	}
	stranger, admin := newClient(t, srv.Client()).Mutex(name), srv.Client()
	losses := 0
	for ; over.Err() == nil && !t.Failed(); losses++ {
		time.Sleep(time.Duration(rand.IntN(4000)) * time.Microsecond)
		must(t, admin.Del(ctx, key(stranger)).Err())
		hold(stranger.TryLock) // whoever passes it on then does not know
	}
	wg.Wait()
	t.Logf("the server forgot %d times", losses)
	f.check(t)
	eventually(t, 10*time.Second, "the name is free", func() bool { return isFree(t, stranger) })
}
