package integration

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/server"
)

// causes counts the lines of a log by their message.
func (l *logbook) causes() map[string]int {
	n := make(map[string]int)
	for _, m := range regexp.MustCompile(`msg="(.*?)"`).FindAllStringSubmatch(l.text(), -1) {
		n[m[1]]++
	}
	return n
}

// connections is how many clients a server has, without the one that asks.
func connections(t testing.TB, rdb *redis.Client) int {
	t.Helper()
	info, err := rdb.Info(context.Background(), "clients").Result()
	must(t, err)
	m := regexp.MustCompile(`connected_clients:(\d+)`).FindStringSubmatch(info)
	n, err := strconv.Atoi(m[1])
	must(t, err)
	return n - 1
}

// A thousand locks are held and a hundred waited for while the server is dead for some seconds. The log stays readable,
// everybody is told or served, and what the outage cost is given back.
func TestOutageWithAThousandLocksStaysReadableAndLeavesNothing(t *testing.T) {
	t.Parallel()
	srv := server.Start(t)
	const held, waiters, pool = 1000, 100, 20
	var log logbook
	small := func(o *redis.Options) { o.PoolSize = pool }
	mine, other := newClient(t, srv.Client(small), log.option()), newClient(t, srv.Client(small), log.option())
	name := unique(t)
	var holds []*holdfast.Hold
	for i := range held {
		holds = append(holds, locked(t, mine.Mutex(fmt.Sprint(name, i), holdfast.Lease(12*time.Second))))
	}
	ctx := within(t, 2*time.Minute)
	before := runtime.NumGoroutine()
	var waits []<-chan result
	for i := range waiters {
		waits = append(waits, lockAside(ctx, other.Mutex(fmt.Sprint(name, i))))
	}
	queued(t, mine.Mutex(fmt.Sprint(name, waiters-1)), 1)

	srv.Kill()
	<-time.After(5 * time.Second) // the outage
	srv.Restart()                 // empty
	began := time.Now()
	for _, w := range waits {
		put(t, served(t, 30*time.Second, w))
	}
	for _, h := range holds {
		told(t, 30*time.Second, h)
		_ = h.Release(context.Background())
	}
	t.Logf("all served and told %v after the restart; logged: %v", time.Since(began).Round(time.Millisecond), log.causes())
	for cause, n := range log.causes() {
		if n > 10 {
			t.Errorf("%d lines %q", n, cause)
		}
	}
	if !strings.Contains(log.text(), "renewal failed") {
		t.Error("the outage left no word in the log")
	}
	eventually(t, 60*time.Second, "the goroutines are gone", func() bool { return runtime.NumGoroutine() <= before+2*pool })
	if n := connections(t, srv.Client()); n > 2*(pool+1) {
		t.Errorf("%d connections", n)
	}
	put(t, locked(t, mine.Mutex(name)))
}
