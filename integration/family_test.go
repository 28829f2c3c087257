package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/fault"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/internal/config"
)

// inQueue waits until a name's queue has n waiters.
func inQueue(t testing.TB, n int, inspect func(context.Context) (holdfast.State, error)) {
	t.Helper()
	eventually(t, 20*time.Second, fmt.Sprint(n, " are queued"), func() bool { return waiting(t, inspect) == n })
}

// take acquires at once or fails the test.
func take(t testing.TB, acquire func(context.Context) (*holdfast.Hold, error)) *holdfast.Hold {
	t.Helper()
	h, err := acquire(within(t, 10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// put releases or fails the test.
func put(t testing.TB, h *holdfast.Hold) {
	t.Helper()
	if err := h.Release(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// Three processes, twenty goroutines each: the order of grants is that of arrival, whatever happens to the
// subscriptions on the way.
func TestFairLockGrantsInTheOrderOfArrivalOverProcesses(t *testing.T) {
	srv := server.Start(t)
	rdb, name := srv.Client(), unique(t)
	lock := newClient(t, rdb).FairLock(name)
	first := take(t, lock.Lock)
	actors := []*actor{hire(t, srv.Addr()), hire(t, srv.Addr()), hire(t, srv.Addr())}
	for i := range 60 {
		actors[i%3].tell("acquire %d fair %s 30s", i, name)
		inQueue(t, i+1, lock.Inspect)
	}
	stop := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Millisecond):
				rdb.ClientKillByFilter(context.Background(), "TYPE", "pubsub")
			}
		}
	})
	put(t, first)
	last := first.Token()
	for i := range 60 {
		var token int64
		line := actors[i%3].hear("granted ")
		var id int
		if _, err := fmt.Sscanf(line, "granted %d %d", &id, &token); err != nil || id != i || token <= last {
			t.Fatalf("turn %d: %q after token %d", i, line, last)
		}
		last = token
		actors[i%3].tell("release %d", i)
		actors[i%3].hear(fmt.Sprintf("released %d <nil>", i))
	}
	close(stop)
	killer.Wait()
}

// A process dies that holds and has twenty in the queue: who waits behind them waits for the lease and one window
// and claim, not for twenty claims.
func TestFairLockPassesOverADeadProcessAtOnce(t *testing.T) {
	srv := server.Start(t)
	lock := newClient(t, srv.Client()).FairLock(unique(t))
	doomed := hire(t, srv.Addr())
	doomed.tell("acquire 0 fair %s 2s", lock.Name())
	doomed.hear("granted 0")
	for i := 1; i <= 20; i++ {
		doomed.tell("acquire %d fair %s 2s", i, lock.Name())
	}
	inQueue(t, 20, lock.Inspect)
	granted := make(chan time.Time, 1)
	go func() {
		h, err := lock.Lock(within(t, 60*time.Second))
		if err != nil {
			t.Error(err)
			return
		}
		granted <- time.Now()
		_ = h.Release(context.Background())
	}()
	inQueue(t, 21, lock.Inspect)
	doomed.Kill()
	died := time.Now()
	const bound = 2*time.Second + 3*time.Second + 3*time.Second + time.Second // lease, window, claim
	if took := (<-granted).Sub(died); took > bound {
		t.Errorf("served after %v, at most %v is right", took, bound)
	}
}

// A hundred waiters of one process lose their tickets with the key, or because their process stood still: they come
// back in their old order.
func TestFairLockWaitersKeepTheirOrderThroughLossOfTheKeyAndAFreeze(t *testing.T) {
	for _, harm := range []string{"the key is deleted", "the process is frozen"} {
		t.Run(harm, func(t *testing.T) {
			srv := server.Start(t)
			rdb, name := srv.Client(), unique(t)
			lock := newClient(t, rdb).FairLock(name)
			holder := take(t, lock.Lock)
			crowd := hire(t, srv.Addr())
			for i := range 100 {
				crowd.tell("acquire %d fair %s 30s", i, name)
				inQueue(t, i+1, lock.Inspect)
			}
			if harm == "the key is deleted" {
				rdb.Del(t.Context(), "holdfast:fair:"+name)
			} else {
				crowd.Stop()
				// Somebody else's polls are what makes the frozen process count as dead.
				stranger := newClient(t, srv.Client()).FairLock(name)
				ctx, cancel := context.WithCancel(t.Context())
				gone := make(chan struct{})
				go func() { _, _ = stranger.Lock(ctx); close(gone) }()
				eventually(t, 20*time.Second, "the frozen waiters count as dead", func() bool {
					state, err := lock.Inspect(t.Context())
					return err == nil && len(state.Queue) > 0 && !state.Queue[0].Alive
				})
				cancel()
				<-gone
				crowd.Cont()
			}
			_ = holder.Release(context.Background()) // in one of the cases it is lost by now
			began := time.Now()
			for i := range 100 {
				if line := crowd.hear("granted "); !strings.HasPrefix(line, fmt.Sprintf("granted %d ", i)) {
					t.Fatalf("turn %d: %q", i, line)
				}
				crowd.tell("release %d", i)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("all were served after %v", took)
			}
		})
	}
}

// Readers that come again without pause do not starve a writer.
func TestRWLockWriterGetsInAmongRestlessReaders(t *testing.T) {
	t.Parallel()
	srv, name := server.Shared(t), unique(t)
	ctx, cancel := context.WithCancel(within(t, time.Minute))
	var reads atomic.Int64
	var readers sync.WaitGroup
	for range 8 {
		lock := newClient(t, srv.Client()).RWLock(name)
		readers.Go(func() {
			for ctx.Err() == nil {
				err := lock.RDo(ctx, func(context.Context) error {
					reads.Add(1)
					time.Sleep(50 * time.Millisecond)
					return nil
				})
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	writer := newClient(t, srv.Client()).RWLock(name)
	eventually(t, 10*time.Second, "readers read", func() bool { return reads.Load() > 16 })
	for range 10 {
		before := reads.Load()
		h := take(t, writer.Lock)
		// In front of it were the eight that held, and those that had asked before it did.
		if n := reads.Load() - before; n > 24 {
			t.Errorf("%d reads began before the writer wrote", n)
		}
		put(t, h)
	}
	cancel()
	readers.Wait()
}

func TestRWLockReadersBehindAWriterEnterTogether(t *testing.T) {
	t.Parallel()
	srv, name := server.Shared(t), unique(t)
	client := newClient(t, srv.Client())
	lock := client.RWLock(name)
	writer := take(t, lock.Lock)
	together := make(chan *holdfast.Hold, 5)
	for range 5 {
		other := newClient(t, srv.Client()).RWLock(name)
		go func() {
			h, err := other.RLock(within(t, 20*time.Second))
			if err != nil {
				t.Error(err)
			}
			together <- h
		}()
	}
	inQueue(t, 5, lock.Inspect)
	put(t, writer)
	for range 5 {
		defer put(t, <-together) // nobody releases before all five hold
	}
}

// A reader's process dies; another reader lives on for a while. The writer waits for the lease of the dead one.
func TestRWLockDeadReaderDelaysAWriterByItsOwnLeaseAtMost(t *testing.T) {
	srv := server.Start(t)
	name := unique(t)
	lock := newClient(t, srv.Client()).RWLock(name)
	alive := take(t, newClient(t, srv.Client()).RWLock(name).RLock)
	doomed := hire(t, srv.Addr())
	doomed.tell("acquire 0 read %s 3s", name)
	doomed.hear("granted 0")
	granted := make(chan time.Time, 1)
	go func() {
		put(t, take(t, lock.Lock))
		granted <- time.Now()
	}()
	inQueue(t, 1, lock.Inspect)
	doomed.Kill()
	died := time.Now()
	time.AfterFunc(time.Second, func() { _ = alive.Release(context.Background()) })
	if took := (<-granted).Sub(died); took > 4*time.Second {
		t.Errorf("the writer was in after %v, the lease was 3s", took)
	}
}

func TestRWLockWriterThatGivesUpLetsReadersInAtOnce(t *testing.T) {
	t.Parallel()
	srv, name := server.Shared(t), unique(t)
	lock := newClient(t, srv.Client(), slowPolls()).RWLock(name)
	reading := take(t, lock.RLock)
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan error, 1)
	go func() { _, err := lock.Lock(ctx); gaveUp <- err }()
	inQueue(t, 1, lock.Inspect)
	second := make(chan *holdfast.Hold, 1)
	other := newClient(t, srv.Client(), slowPolls()).RWLock(name)
	go func() { second <- take(t, other.RLock) }()
	inQueue(t, 2, lock.Inspect)
	cancel()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	select {
	case h := <-second:
		put(t, h)
	case <-time.After(2 * time.Second):
		t.Error("the reader behind is not in")
	}
	put(t, reading)
}

// A write hold is released over a nested read hold while a writer waits, a thousand times: the writer is never in
// before the read hold is released.
func TestRWLockDowngradeKeepsWritersOut(t *testing.T) {
	t.Parallel()
	srv, name := server.Shared(t), unique(t)
	lock := newClient(t, srv.Client()).RWLock(name)
	other := newClient(t, srv.Client()).RWLock(name)
	for range 1000 {
		write := take(t, lock.Lock)
		read, err := lock.RLock(write.Context(within(t, 10*time.Second)))
		if err != nil {
			t.Fatal(err)
		}
		var left atomic.Bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			h := take(t, other.Lock)
			if !left.Load() {
				t.Error("a writer entered beside a reader")
			}
			put(t, h)
		}()
		put(t, write)
		left.Store(true)
		put(t, read)
		<-done
	}
}

// A late copy of an old release never raises a weight again: readers stay beside the reader that once wrote.
func TestRWLockLateReleaseRaisesNoWeight(t *testing.T) {
	t.Parallel()
	srv, name := server.Shared(t), unique(t)
	proxy := fault.NewProxy(t, srv.Addr())
	lock := newClient(t, redis.NewClient(&redis.Options{Addr: proxy.Addr(), ReadTimeout: 200 * time.Millisecond})).RWLock(name)
	write := take(t, lock.Lock)
	inner, err := lock.Lock(write.Context(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	read, err := lock.RLock(inner.Context(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	late := proxy.DelayRequests(1, time.Second, fault.Script()) // "two levels are left, with all the weight"
	put(t, inner)
	put(t, write)
	eventually(t, 10*time.Second, "the late release ran", func() bool { return late.Answered() == 1 })
	state, err := lock.Inspect(t.Context())
	if err != nil || len(state.Holders) != 1 || state.Holders[0].Weight != 1 {
		t.Fatalf("holders %+v, %v", state.Holders, err)
	}
	put(t, take(t, newClient(t, srv.Client()).RWLock(name).RLock))
	put(t, read)
}

// Two processes' worth of clients take one to three of three, and five of a hundred replies are lost.
func TestSemaphoreNeverExceedsItsCapacityThoughRepliesAreLost(t *testing.T) {
	srv, name := server.Start(t), unique(t)
	proxy := fault.NewProxy(t, srv.Addr())
	var n atomic.Int64
	proxy.DropRepliesAndClose(-1, fault.All(fault.Script(), func([]string) bool { return n.Add(1)%20 == 0 }))
	const capacity = 3
	var mu sync.Mutex
	inUse := map[*holdfast.Hold]int{}
	served := make([]atomic.Int64, 24)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for c := range 2 {
		sem := newClient(t, redis.NewClient(&redis.Options{Addr: proxy.Addr(), MaxRetries: -1})).Semaphore(name, capacity)
		for g := range 12 {
			wg.Go(func() {
				for want := 1 + g%capacity; ctx.Err() == nil; {
					h, err := sem.Acquire(ctx, want)
					if err != nil {
						if ctx.Err() == nil {
							t.Error(err)
						}
						return
					}
					served[12*c+g].Add(1)
					mu.Lock()
					inUse[h] = want
					sum := 0
					for other, w := range inUse {
						if other.Valid() {
							sum += w
						}
					}
					if sum > capacity {
						t.Errorf("%d of %d in use", sum, capacity)
					}
					mu.Unlock()
					time.Sleep(time.Millisecond)
					mu.Lock()
					delete(inUse, h)
					mu.Unlock()
					if err := h.Release(context.Background()); err != nil {
						t.Errorf("release: %v", err)
					}
				}
			})
		}
	}
	wg.Wait()
	proxy.Heal()
	for i := range served {
		if served[i].Load() == 0 {
			t.Errorf("goroutine %d was never served", i)
		}
	}
	rdb := srv.Client()
	sem := newClient(t, rdb).Semaphore(name, capacity)
	eventually(t, 5*time.Second, "all three are free", func() bool {
		usage, err := sem.Inspect(t.Context())
		return err == nil && usage.Free == capacity && len(usage.Queue) == 0
	})
	if ttl := rdb.PTTL(t.Context(), "holdfast:sem:"+name).Val(); ttl > 31*time.Second || ttl == -1 {
		t.Errorf("the key would live on for %v", ttl)
	}
}

// What a cycle costs: two round trips without contention, hardly more with it.
func TestScriptCallsPerCycle(t *testing.T) {
	for _, kind := range []string{"mutex", "fair", "read", "write", "sem1", "sem8"} {
		t.Run(kind, func(t *testing.T) {
			srv, name := server.Start(t), unique(t)
			rdb := srv.Client()
			alone := acquirer(newClient(t, srv.Client()), kind, name)
			put(t, take(t, alone))
			before := scriptCalls(t, rdb)
			for range 50 {
				put(t, take(t, alone))
			}
			if n := scriptCalls(t, rdb) - before; n != 100 {
				t.Errorf("50 cycles alone took %d calls, want 100", n)
			}
			const clients, each, cycles = 4, 8, 30 // clients stand for processes: they share nothing
			var acquires []func(context.Context) (*holdfast.Hold, error)
			for range clients {
				acquires = append(acquires, acquirer(newClient(t, srv.Client()), kind, name))
			}
			crowd := func(cycles int) {
				var wg sync.WaitGroup
				for i := range clients * each {
					acquire := acquires[i%clients]
					wg.Go(func() {
						for range cycles {
							h, err := acquire(within(t, time.Minute))
							if err != nil {
								t.Error(err)
								return
							}
							if err := h.Release(context.Background()); err != nil {
								t.Error(err)
							}
						}
					})
				}
				wg.Wait()
			}
			for range 20 { // until the subscriptions stand, waiters poll; who need not wait at the server has none
				crowd(3)
				if len(rdb.PubSubChannels(t.Context(), "holdfast:inbox:*").Val()) == clients {
					break
				}
			}
			crowd(3)
			before = scriptCalls(t, rdb)
			crowd(cycles)
			per := float64(scriptCalls(t, rdb)-before) / (clients * each * cycles)
			t.Logf("%.2f script calls per contended cycle", per)
			if per > 2.2 {
				t.Errorf("%.2f script calls per contended cycle", per)
			}
		})
	}
}

// scriptTime reads how long the server ran scripts, in microseconds.
func scriptTime(t testing.TB, rdb *redis.Client) (usec int64) {
	t.Helper()
	info, err := rdb.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if strings.HasPrefix(line, "cmdstat_evalsha:") {
			_, rest, _ := strings.Cut(line, "usec=")
			_, _ = fmt.Sscanf(rest, "%d", &usec)
		}
	}
	return usec
}

// Two thousand goroutines wait for one fair lock: all are served in order, and a hand-over costs the server what it
// costs with twenty.
func TestTwoThousandWaitersAreServedInOrderAtTheSameCost(t *testing.T) {
	cost := func(waiters int) float64 {
		srv := server.Start(t)
		rdb := srv.Client()
		// Rare polls: what is measured is the hand-over.
		client := newClient(t, rdb, func(c *config.Config) { c.Window, c.Claim = 90*time.Second, 90*time.Second })
		lock := client.FairLock(unique(t))
		first := take(t, lock.Lock)
		order := make(chan int64, waiters)
		var wg sync.WaitGroup
		for range waiters {
			wg.Go(func() {
				h, err := lock.Lock(within(t, 2*time.Minute))
				if err != nil {
					t.Error(err)
					return
				}
				order <- h.Token()
				if err := h.Release(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		eventually(t, time.Minute, "all are queued", func() bool { return waiting(t, lock.Inspect) == waiters })
		calls, usec := scriptCalls(t, rdb), scriptTime(t, rdb)
		put(t, first)
		wg.Wait()
		calls, usec = scriptCalls(t, rdb)-calls, scriptTime(t, rdb)-usec
		close(order)
		last := first.Token()
		for token := range order {
			if token <= last {
				t.Errorf("token %d after %d", token, last)
			}
			last = token
		}
		return float64(usec) / float64(calls)
	}
	few, many := cost(20), cost(2000)
	t.Logf("%.1f µs a script call with 20 waiters, %.1f µs with 2,000", few, many)
	if many > 2*few {
		t.Errorf("%.1f µs a script call with 20 waiters, %.1f µs with 2,000", few, many)
	}
}
