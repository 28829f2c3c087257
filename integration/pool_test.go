package integration

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/server"
)

// occupy keeps all connections of a client's pool busy with blocking commands until the test ends or free is called.
func occupy(t *testing.T, srv *server.Server, rdb *redis.Client, connections int) (free func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range connections {
		wg.Go(func() {
			for ctx.Err() == nil {
				_ = rdb.BLPop(ctx, 0, "never") // gives way only to the end of the connection
			}
		})
	}
	admin := srv.Client()
	blocked := func(n string) bool {
		return strings.Contains(admin.Info(context.Background(), "clients").Val(), "blocked_clients:"+n+"\r\n")
	}
	eventually(t, 20*time.Second, "the pool is occupied", func() bool { return blocked("4") })
	var once sync.Once
	free = func() {
		once.Do(func() {
			cancel()
			for !blocked("0") {
				_ = admin.ClientKillByFilter(context.Background(), "TYPE", "normal", "SKIPME", "yes")
				time.Sleep(5 * time.Millisecond)
			}
			wg.Wait()
		})
	}
	t.Cleanup(free)
	return free
}

// A user's own blocking commands take every connection of the pool that holdfast was given. Renewals have one of their
// own; who waits is bounded by his context, and errors say what it is.
func TestOccupiedPoolLosesNoHold(t *testing.T) {
	t.Parallel()
	srv := server.Start(t)
	rdb := srv.Client(func(o *redis.Options) { o.PoolSize, o.PoolTimeout = 4, 300*time.Millisecond })
	client, name := newClient(t, rdb), unique(t)
	m := client.Mutex(name, holdfast.Lease(lossLease))
	hold := locked(t, m)
	long := locked(t, client.Mutex(name+".long", holdfast.Lease(farLease)))
	free := occupy(t, srv, rdb, 4)

	began := time.Now()
	_, err := client.Mutex(name + ".other").Lock(within(t, 700*time.Millisecond))
	expect(t, "Lock", err, context.DeadlineExceeded, holdfast.ErrUnavailable)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("a Lock of 700 ms took %v", took)
	}
	_, err = client.Mutex(name + ".other").TryLock(within(t, 20*time.Second))
	expect(t, "TryLock", err, holdfast.ErrUnavailable)
	if !errors.Is(err, redis.ErrPoolTimeout) {
		t.Errorf("TryLock does not name the pool: %v", err)
	}
	if !stays(hold.Done(), 2*lossLease) {
		t.Errorf("lost: %v", hold.Err())
	}
	next := lockAside(within(t, time.Minute), m)
	free()
	put(t, hold)
	put(t, served(t, 20*time.Second, next))
	if err := long.Extend(within(t, 20*time.Second)); err != nil {
		t.Error(err)
	}
	put(t, long)
}
