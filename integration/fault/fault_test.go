package fault_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/integration/fault"
	"github.com/holdfast-go/holdfast/integration/server"
)

func TestMain(m *testing.M) {
	code := m.Run()
	server.StopShared()
	os.Exit(code)
}

// prefixed returns a proxy to the shared server and a key of the test's own,
// deleted when it ends.
func prefixed(t *testing.T) (p *fault.Proxy, direct *redis.Client, key string) {
	t.Helper()
	s := server.Shared(t)
	direct = s.Client()
	key = "fault-test:" + t.Name()
	direct.Del(t.Context(), key)
	t.Cleanup(func() { server.Shared(t).Client().Del(t.Context(), key) })
	return fault.NewProxy(t, s.Addr()), direct, key
}

// through returns a client of the proxy that gives up early and never retries.
func through(t *testing.T, p *fault.Proxy, opts ...func(*redis.Options)) *redis.Client {
	t.Helper()
	o := &redis.Options{Addr: p.Addr(), MaxRetries: -1, ReadTimeout: 200 * time.Millisecond, DialerRetries: 1}
	for _, apply := range opts {
		apply(o)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// dial returns a bare connection, for tests that look at bytes.
func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func send(t *testing.T, conn net.Conn, data string) {
	t.Helper()
	if _, err := io.WriteString(conn, data); err != nil {
		t.Fatal(err)
	}
}

// expect reads exactly the bytes of want.
func expect(t *testing.T, conn net.Conn, want string) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	got := make([]byte, len(want))
	n, err := io.ReadFull(conn, got)
	if err != nil || string(got) != want {
		t.Fatalf("read %q, %v; want %q", got[:n], err, want)
	}
}

// expectSilence checks that conn is open but brings nothing.
func expectSilence(t *testing.T, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	n, err := conn.Read(make([]byte, 1))
	if n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read %d bytes, %v; want silence", n, err)
	}
}

// expectEnd checks that conn was closed by the other side.
func expectEnd(t *testing.T, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read %d bytes, %v; want the end", n, err)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 5 s: %s", what)
		}
	}
}
