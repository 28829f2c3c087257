package integration

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/server"
)

// A thousand waits of one client cost one subscription, and when all is over, nothing.
func TestThousandWaitersShareOneSubscriptionAndLeaveNothing(t *testing.T) {
	leavesNothing(t)
	srv := server.Start(t)
	admin := srv.Client()
	waitForMany(t, srv.Addr(), admin, 50) // what is made once is made
	goroutines, heap := runtime.NumGoroutine(), heapInUse()
	waitForMany(t, srv.Addr(), admin, 1000)
	eventually(t, 10*time.Second, "no more goroutines than before", func() bool { return runtime.NumGoroutine() <= goroutines })
	if now := heapInUse(); now > heap+5<<20 {
		t.Errorf("the heap grew from %d to %d bytes", heap, now)
	}
}

// waitForMany has one client wait for n names that another holds, releases them, and closes both.
func waitForMany(t *testing.T, addr string, admin *redis.Client, n int) {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	// Polls are half a minute apart: what is served within seconds was served by a message. Nothing is on its
	// way either when a hold is released, so that not even tombstones stay.
	holder, closeHolder := bareClient(t, addr)
	waiter, closeWaiter := bareClient(t, addr)
	held := make([]*holdfast.Hold, n)
	each(n, func(i int) {
		var err error
		if held[i], err = holder.Mutex(fmt.Sprint(i), holdfast.Lease(farLease)).Lock(ctx); err != nil {
			t.Error(err)
		}
	})
	var waiters sync.WaitGroup
	got := make([]*holdfast.Hold, n)
	for i := range n {
		waiters.Go(func() {
			var err error
			if got[i], err = waiter.Mutex(fmt.Sprint(i), holdfast.Lease(farLease)).Lock(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	calls := -1
	eventually(t, 30*time.Second, "everybody queued, and silence", func() bool {
		last := calls
		time.Sleep(100 * time.Millisecond) // silence is a time without calls
		calls = scriptCalls(t, admin)
		return calls == last && tickets(t, admin, n) == n
	})
	if subscriptions := subscribers(t, admin); subscriptions != 1 {
		t.Errorf("%d subscribed connections for %d waiters", subscriptions, n)
	}

	began := time.Now()
	each(n, func(i int) {
		if err := held[i].Release(ctx); err != nil {
			t.Error(err)
		}
	})
	waiters.Wait()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("handing %d names over took %v", n, took)
	}
	each(n, func(i int) {
		if err := got[i].Release(ctx); err != nil {
			t.Error(err)
		}
	})
	if keys := admin.Keys(ctx, "*").Val(); len(keys) > 0 {
		t.Errorf("%d keys are left, for example %q: %v", len(keys), keys[0], admin.HGetAll(ctx, keys[0]).Val())
	}
	closeHolder()
	closeWaiter()
	eventually(t, promptly, "no subscription", func() bool { return subscribers(t, admin) == 0 })
}

// bareClient returns a client of which nothing remains when it has been closed, not even the test's care for it.
func bareClient(t *testing.T, addr string) (*holdfast.Client, func()) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	client, err := holdfast.New(rdb, holdfast.Logger(nil), slowPolls())
	if err != nil {
		t.Fatal(err)
	}
	return client, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := client.Close(ctx); err != nil {
			t.Error(err)
		}
		_ = rdb.Close()
	}
}

// each calls f with every number below n, twenty at a time.
func each(n int, f func(i int)) {
	var wg sync.WaitGroup
	for k := range 20 {
		wg.Go(func() {
			for i := k; i < n; i += 20 {
				f(i)
			}
		})
	}
	wg.Wait()
}

// tickets counts the waiters in the queues of the mutexes 0 to n-1.
func tickets(t *testing.T, rdb *redis.Client, n int) (sum int) {
	cmds, err := rdb.Pipelined(context.Background(), func(p redis.Pipeliner) error {
		for i := range n {
			p.HGet(context.Background(), holdfast.DefaultPrefix+"mutex:"+strconv.Itoa(i), "q")
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	for _, c := range cmds {
		q, _ := c.(*redis.StringCmd).Int()
		sum += q
	}
	return sum
}

var evals = regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=(\d+)`)

// scriptCalls counts the scripts that the server has run.
func scriptCalls(t *testing.T, rdb *redis.Client) (sum int) {
	stats, err := rdb.Info(context.Background(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range evals.FindAllStringSubmatch(stats, -1) {
		n, _ := strconv.Atoi(m[1])
		sum += n
	}
	return sum
}

// heapInUse is what the heap holds after everything unreachable was collected.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
