package server_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/integration/server"
)

func TestMain(m *testing.M) {
	code := m.Run()
	server.StopShared()
	os.Exit(code)
}

// impatient makes a client report trouble at once instead of retrying.
func impatient(o *redis.Options) {
	o.MaxRetries = -1
	o.ReadTimeout = 200 * time.Millisecond
}

func TestRestartedServerIsEmptyOnTheSameAddress(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	addr := s.Addr()
	c := s.Client(impatient)
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	if err := c.Ping(t.Context()).Err(); err == nil {
		t.Fatal("a killed server answered")
	}
	s.Kill() // again, to no effect
	s.Restart()
	if s.Addr() != addr {
		t.Fatalf("address moved from %s to %s", addr, s.Addr())
	}
	if err := s.Client().Get(t.Context(), "k").Err(); !errors.Is(err, redis.Nil) {
		t.Fatalf("GET after restart: %v, want redis.Nil", err)
	}
}

func TestPausedServerExecutesLate(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	s.Client().Ping(t.Context())
	s.Pause()
	var timeout net.Error
	err := s.Client(impatient).Ping(t.Context()).Err()
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Fatalf("PING of a paused server: %v, want a timeout", err)
	}
	// Raw, because a client would not send before its handshake is answered.
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "SET late 1\r\n"); err != nil {
		t.Fatal(err)
	}
	s.Resume()
	reply := make([]byte, 5)
	if _, err := io.ReadFull(conn, reply); err != nil || string(reply) != "+OK\r\n" {
		t.Fatalf("reply %q, %v", reply, err)
	}
}

func TestArgsReachTheServerAndDebugIsAllowed(t *testing.T) {
	t.Parallel()
	c := server.Start(t, server.Args("--maxmemory", "10mb"), server.Args("--maxmemory-policy", "noeviction")).Client()
	got, err := c.ConfigGet(t.Context(), "maxmemory").Result()
	if err != nil || got["maxmemory"] != "10485760" {
		t.Fatalf("maxmemory: %v, %v", got, err)
	}
	if err := c.Do(t.Context(), "DEBUG", "SLEEP", "0").Err(); err != nil {
		t.Fatal(err)
	}
}

func TestSharedServerIsOneServer(t *testing.T) {
	t.Parallel()
	a, b := server.Shared(t), server.Shared(t)
	if a.Addr() != b.Addr() {
		t.Fatalf("%s and %s", a.Addr(), b.Addr())
	}
	key := "holdfast-test:" + t.Name()
	if err := a.Client().Set(t.Context(), key, 1, time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := b.Client().Del(t.Context(), key).Result(); n != 1 || err != nil {
		t.Fatalf("DEL: %d, %v", n, err)
	}
}

func TestServerDoesNotOutliveItsTest(t *testing.T) {
	t.Parallel()
	var addr string
	t.Run("owner", func(t *testing.T) {
		s := server.Start(t)
		s.Pause() // a frozen one must go as well
		addr = s.Addr()
	})
	if addr == "" {
		t.Skip("no server")
	}
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer func() { _ = c.Close() }()
	if err := c.Ping(context.Background()).Err(); err == nil {
		t.Fatal("the server still answers")
	}
}
