package integration

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/fault"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/internal/config"
)

// The lease of tests that must not be saved by its end: fifteen times longer than promptly.
const farLease = 60 * time.Second

// promptly is how long a waiter may take when a message, a resubscription or a poll wakes it.
const promptly = 2 * time.Second

// result is what a Lock call returned.
type result struct {
	hold *holdfast.Hold
	err  error
}

// lockAside calls Lock in a goroutine of its own.
func lockAside(ctx context.Context, m *holdfast.Mutex) <-chan result {
	ch := make(chan result, 1)
	go func() {
		hold, err := m.Lock(ctx)
		ch <- result{hold, err}
	}()
	return ch
}

// served returns the hold that a Lock call gets within the time.
func served(t testing.TB, within time.Duration, ch <-chan result) *holdfast.Hold {
	t.Helper()
	select {
	case r := <-ch:
		if r.err != nil {
			t.Fatal(r.err)
		}
		return r.hold
	case <-time.After(within):
		t.Fatalf("the waiter got nothing within %v", within)
		return nil
	}
}

// locked returns a hold that is there for the taking.
func locked(t testing.TB, m *holdfast.Mutex) *holdfast.Hold {
	t.Helper()
	hold, err := m.Lock(within(t, 10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return hold
}

// released gives a hold back.
func released(t testing.TB, hold *holdfast.Hold) {
	t.Helper()
	if err := hold.Release(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// queued waits until a mutex has n waiters at the server.
func queued(t testing.TB, m *holdfast.Mutex, n int) {
	t.Helper()
	eventually(t, 10*time.Second, fmt.Sprintf("%d in the queue of %q", n, m.Name()), func() bool { return waiting(t, m.Inspect) == n })
}

// subscribed waits until the server sees n subscribed connections.
func subscribed(t testing.TB, rdb *redis.Client, n int) {
	t.Helper()
	eventually(t, 10*time.Second, fmt.Sprintf("%d subscribed connections", n), func() bool { return subscribers(t, rdb) == n })
}

func subscribers(t testing.TB, rdb *redis.Client) int {
	t.Helper()
	list, err := rdb.Do(context.Background(), "CLIENT", "LIST", "TYPE", "pubsub").Text()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(list, "\n")
}

// leavesNothing fails the test if goroutines are left when everything it opens later has been closed.
func leavesNothing(t testing.TB) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		err := goleak.Find(before)
		for end := time.Now().Add(5 * time.Second); err != nil && time.Now().Before(end); { // go-redis looks once a second
			err = goleak.Find(before)
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// logbook keeps what a client logs.
type logbook struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.Write(p)
}

func (l *logbook) option() holdfast.Option {
	return holdfast.Logger(slog.New(slog.NewTextHandler(l, nil)))
}

func (l *logbook) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.String()
}

// warnings counts the warnings that contain the text.
func (l *logbook) warnings(text string) (n int) {
	for line := range strings.Lines(l.text()) {
		if strings.Contains(line, "level=WARN") && strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func TestPushAloneWakesAWaiter(t *testing.T) {
	t.Parallel()
	srv := server.Shared(t)
	name := unique(t)
	holder := newClient(t, srv.Client(), slowPolls()).Mutex(name, holdfast.Lease(farLease))
	waiter := newClient(t, srv.Client(), slowPolls()).Mutex(name, holdfast.Lease(farLease))
	for range 10 {
		hold := locked(t, holder)
		next := lockAside(within(t, 20*time.Second), waiter)
		queued(t, holder, 1)
		released(t, hold)
		released(t, served(t, promptly, next))
	}
}

func TestWaiterOutlivesAKilledSubscription(t *testing.T) {
	killSubscribers(t, 50)
}

// Whatever was pushed into the gap is asked for when the subscription stands again, not by the next poll.
func TestResubscriptionAsksForWhatWasMissed(t *testing.T) {
	killSubscribers(t, 20, slowPolls())
}

// killSubscribers kills the subscription just before a release, again and again.
func killSubscribers(t *testing.T, rounds int, options ...holdfast.Option) {
	leavesNothing(t)
	srv := server.Start(t)
	admin, name := srv.Client(), unique(t)
	holder := newClient(t, srv.Client(), options...).Mutex(name, holdfast.Lease(farLease))
	waiter := newClient(t, srv.Client(), options...).Mutex(name, holdfast.Lease(farLease))
	for range rounds {
		hold := locked(t, holder)
		next := lockAside(within(t, 20*time.Second), waiter)
		queued(t, holder, 1)
		subscribed(t, admin, 1)
		if err := admin.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err(); err != nil {
			t.Fatal(err)
		}
		released(t, hold)
		released(t, served(t, promptly, next))
	}
}

func TestWaiterOutlivesAHalfOpenSubscription(t *testing.T) {
	leavesNothing(t)
	srv := server.Start(t)
	proxy, admin, name := fault.NewProxy(t, srv.Addr()), srv.Client(), unique(t)
	holder := newClient(t, srv.Client()).Mutex(name, holdfast.Lease(farLease))
	waiter := newClient(t, throughProxy(t, proxy)).Mutex(name, holdfast.Lease(farLease))
	for range 5 {
		hold := locked(t, holder)
		next := lockAside(within(t, 20*time.Second), waiter)
		queued(t, holder, 1)
		subscribed(t, admin, 1)
		proxy.Blackhole(fault.ToClient, fault.Subscribers)
		released(t, hold)
		got := served(t, promptly, next)
		proxy.Heal()
		released(t, got)
	}
}

func TestHalfOpenSubscriptionIsReplaced(t *testing.T) {
	leavesNothing(t)
	srv := server.Start(t)
	proxy, name := fault.NewProxy(t, srv.Addr()), unique(t)
	ping := holdfast.Option(func(c *config.Config) { c.Ping = 200 * time.Millisecond })
	holder := newClient(t, srv.Client(), slowPolls()).Mutex(name, holdfast.Lease(farLease))
	waiter := newClient(t, throughProxy(t, proxy), slowPolls(), ping).Mutex(name, holdfast.Lease(farLease))
	for range 3 {
		hold := locked(t, holder)
		next := lockAside(within(t, 60*time.Second), waiter)
		queued(t, holder, 1)
		eventually(t, 10*time.Second, "a subscription", func() bool { return lastSubscriber(proxy) > 0 })
		old := lastSubscriber(proxy)
		proxy.Blackhole(fault.ToClient, func(c fault.ConnInfo) bool { return c.ID == old })
		eventually(t, 5*time.Second, "another subscription", func() bool { return lastSubscriber(proxy) > old })
		released(t, hold)
		released(t, served(t, promptly, next)) // by the new one: polls are half a minute apart
		proxy.Heal()
	}
}

func TestMissingChannelRightsLeavePollingAndOneWarning(t *testing.T) {
	leavesNothing(t)
	srv := server.Start(t)
	admin, name := srv.Client(), unique(t)
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "mute", "on", ">secret", "~*", "+@all", "resetchannels").Err(); err != nil {
		t.Fatal(err)
	}
	mute := func(o *redis.Options) { o.Username, o.Password = "mute", "secret" }
	var log logbook
	holder := newClient(t, srv.Client(mute)).Mutex(name, holdfast.Lease(farLease))
	waiter := newClient(t, srv.Client(mute), log.option()).Mutex(name, holdfast.Lease(farLease))
	for range 4 {
		hold := locked(t, holder)
		next := lockAside(within(t, 20*time.Second), waiter)
		queued(t, holder, 1)
		eventually(t, promptly, "the warning", func() bool { return log.warnings("") > 0 })
		released(t, hold) // although its PUBLISH is refused
		released(t, served(t, promptly, next))
	}
	if n := log.warnings(""); n != 1 || log.warnings("no subscription") != 1 {
		t.Errorf("%d warnings, want one about the subscription:\n%s", n, log.text())
	}
	if n := subscribers(t, admin); n != 0 {
		t.Errorf("%d subscriptions of a user that may have none", n)
	}
}

// throughProxy returns a client that reaches its server through a proxy.
func throughProxy(t testing.TB, proxy *fault.Proxy) *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// lastSubscriber is the number of the proxy's latest subscribed connection, 0 without one.
func lastSubscriber(proxy *fault.Proxy) (id int) {
	for _, c := range proxy.Conns() {
		if c.Subscribed {
			id = c.ID
		}
	}
	return id
}
