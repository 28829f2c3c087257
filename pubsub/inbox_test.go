package pubsub_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/pubsub"
)

// events records what an inbox tells.
type events struct {
	subscribed chan struct{}
	messages   chan string
}

func open(t *testing.T, opt *redis.Options, change func(*pubsub.Config)) (*pubsub.Inbox, events) {
	t.Helper()
	rdb := redis.NewClient(opt)
	e := events{subscribed: make(chan struct{}, 100), messages: make(chan string, 100)}
	cfg := pubsub.Config{
		Client: rdb, Channel: "inbox:me", Logger: slog.New(slog.DiscardHandler),
		Subscribed: func() { e.subscribed <- struct{}{} },
		Message:    func(m string) { e.messages <- m },
	}
	if change != nil {
		change(&cfg)
	}
	in := pubsub.New(cfg)
	t.Cleanup(func() {
		in.Close(context.Background())
		_ = rdb.Close()
	})
	in.Open()
	in.Open()
	return in, e
}

func await[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(5 * time.Second):
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}

func TestMessagesArriveOnceSubscribed(t *testing.T) {
	mini := miniredis.RunT(t)
	in, e := open(t, &redis.Options{Addr: mini.Addr()}, nil)
	await(t, e.subscribed, "subscription")
	mini.Publish("inbox:me", "hello")
	if m := await(t, e.messages, "message"); m != "hello" || !in.Up() {
		t.Errorf("got %q, up %v", m, in.Up())
	}
}

func TestABrokenConnectionIsSubscribedAgain(t *testing.T) {
	mini := miniredis.RunT(t)
	var mu sync.Mutex
	var conns []net.Conn
	opt := &redis.Options{Addr: mini.Addr(), Dialer: func(context.Context, string, string) (net.Conn, error) {
		c, err := net.Dial("tcp", mini.Addr())
		mu.Lock()
		defer mu.Unlock()
		conns = append(conns, c)
		return c, err
	}}
	_, e := open(t, opt, nil)
	await(t, e.subscribed, "subscription")
	mu.Lock()
	for _, c := range conns {
		_ = c.Close()
	}
	mu.Unlock()
	await(t, e.subscribed, "second subscription")
	mini.Publish("inbox:me", "again")
	if m := await(t, e.messages, "message"); m != "again" {
		t.Errorf("got %q", m)
	}
}

func TestMissedMessagesHaveItSubscribeAnewButNotAllTheTime(t *testing.T) {
	mini := miniredis.RunT(t)
	in, e := open(t, &redis.Options{Addr: mini.Addr()}, func(c *pubsub.Config) { c.Ping = time.Minute })
	await(t, e.subscribed, "subscription")
	in.Missed()
	if len(e.subscribed) != 0 || !in.Up() {
		t.Error("one missed message replaced the subscription")
	}
	for range 10 {
		in.Missed()
	}
	await(t, e.subscribed, "second subscription")
	mini.Publish("inbox:me", "hello")
	if m := await(t, e.messages, "message"); m != "hello" || len(e.subscribed) != 0 {
		t.Errorf("got %q, %d more subscriptions", m, len(e.subscribed))
	}
}

// mute is a connection that can fall silent in both directions, without an error: half-open.
type mute struct {
	net.Conn
	silent *atomic.Bool
}

func (m mute) Write(b []byte) (int, error) {
	if m.silent.Load() {
		return len(b), nil
	}
	return m.Conn.Write(b)
}

func TestAHalfOpenConnectionIsReplaced(t *testing.T) {
	mini := miniredis.RunT(t)
	var silent atomic.Bool
	opt := &redis.Options{Addr: mini.Addr(), Dialer: func(context.Context, string, string) (net.Conn, error) {
		c, err := net.Dial("tcp", mini.Addr())
		return mute{c, &silent}, err
	}, ReadTimeout: 100 * time.Millisecond}
	_, e := open(t, opt, func(c *pubsub.Config) { c.Ping = 50 * time.Millisecond })
	await(t, e.subscribed, "subscription")
	silent.Store(true)
	time.Sleep(10 * time.Millisecond)
	go func() { time.Sleep(300 * time.Millisecond); silent.Store(false) }()
	await(t, e.subscribed, "second subscription")
}

func TestARefusalIsSaidOnceAndTriedSeldom(t *testing.T) {
	mini := miniredis.RunT(t)
	mini.RequireAuth("secret")
	var log bytes.Buffer
	var mu sync.Mutex
	var dials atomic.Int64
	opt := &redis.Options{Addr: mini.Addr(), Dialer: func(context.Context, string, string) (net.Conn, error) {
		dials.Add(1)
		return net.Dial("tcp", mini.Addr())
	}}
	in, _ := open(t, opt, func(c *pubsub.Config) {
		c.Retry = 100 * time.Millisecond
		c.Logger = slog.New(slog.NewTextHandler(writer(func(b []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return log.Write(b)
		}), nil))
	})
	for end := time.Now().Add(5 * time.Second); dials.Load() < 3 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	mu.Lock()
	defer mu.Unlock()
	if n := strings.Count(log.String(), "no subscription"); n != 1 || in.Up() {
		t.Errorf("said %d times, up %v:\n%s", n, in.Up(), log.String())
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

func TestNothingStartsAfterClose(t *testing.T) {
	mini := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: mini.Addr()})
	defer func() { _ = rdb.Close() }()
	in := pubsub.New(pubsub.Config{
		Client: rdb, Channel: "c", Logger: slog.New(slog.DiscardHandler),
		Subscribed: func() { t.Error("subscribed after Close") }, Message: func(string) {},
	})
	in.Close(t.Context())
	in.Open()
	in.Close(t.Context())
	if n := mini.TotalConnectionCount(); n != 0 {
		t.Errorf("%d connections", n)
	}
}
