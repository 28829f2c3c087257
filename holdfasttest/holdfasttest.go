// Package holdfasttest lets code that uses holdfast be tested without a Redis: a client on an embedded server
// (miniredis), a forced loss of a hold, and the assertion that nothing is held at the end.
//
// Time is real, leases run out by it. Inside a testing/synctest bubble it is the bubble's: hours of renewals
// pass in about a second. Make the server and its clients inside the bubble that uses them.
//
//	func TestNightlyJob(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			client := holdfasttest.NewClient(t)
//			…
//		})
//	}
//
// The embedded server is good enough for a user's tests; it is not a Redis, and holdfast's own correctness is
// proved on real servers.
package holdfasttest

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/config"
	"github.com/holdfast-go/holdfast/internal/tenure"
	"github.com/holdfast-go/holdfast/internal/turnstile"
)

func init() {
	tenure.IgnoreSuspends() // virtual time must not be judged by a real clock
}

// Server is an embedded server for one test. It ends with the test.
type Server struct {
	t    testing.TB
	mini *miniredis.Miniredis
}

// NewServer starts an embedded server.
func NewServer(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, mini: miniredis.NewMiniRedis()}
	s.mini.ClockTTL(true)
	t.Cleanup(s.mini.Close)
	return s
}

// Redis returns a go-redis client of the server, over in-memory connections. It is closed at the end of the test.
func (s *Server) Redis() *redis.Client {
	rdb := redis.NewClient(&redis.Options{
		Addr:                     "embedded",
		Dialer:                   func(context.Context, string, string) (net.Conn, error) { return s.mini.Dial() },
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		DisableIdentity:          true,
	})
	s.t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// Client returns a client of its own on the server: two of them are what two processes are. At the end of the
// test it fails the test if anything of it is still held, telling where that was taken, and is closed.
// It logs nothing unless an option says otherwise.
func (s *Server) Client(options ...holdfast.Option) *holdfast.Client {
	s.t.Helper()
	var hall *turnstile.Hall
	own := []holdfast.Option{holdfast.Logger(slog.New(slog.DiscardHandler)), func(c *config.Config) {
		c.Stacks = true
		c.Hall = func(h any) { hall = h.(*turnstile.Hall) }
	}}
	client, err := holdfast.New(s.Redis(), append(own, options...)...)
	if err != nil {
		s.t.Fatalf("holdfasttest: %v", err)
	}
	s.t.Cleanup(func() {
		for _, taken := range hall.Taken() {
			s.t.Errorf("holdfasttest: %q is still held at the end of the test. It was taken at\n%s", taken.Name, trace(taken.Stack))
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := client.Close(ctx); err != nil {
			s.t.Errorf("holdfasttest: %v", err)
		}
	})
	return client
}

// NewClient returns a client on an embedded server of its own; see Server.Client.
func NewClient(t testing.TB, options ...holdfast.Option) *holdfast.Client {
	t.Helper()
	return NewServer(t).Client(options...)
}

// Lose makes a hold, and all that re-entered under it, lost: Done is closed and contexts have ended, with
// ErrLost, when it returns. The name becomes free for others soon after.
func Lose(t testing.TB, h *holdfast.Hold) {
	t.Helper()
	if h == nil {
		t.Fatal("holdfasttest: Lose of a nil hold")
	}
	keeper, ok := h.Keeper().(interface{ Lose() })
	if !ok {
		t.Fatalf("holdfasttest: %v is not a hold of this library", h)
	}
	keeper.Lose()
}

// trace prints the part of a stack that is not this library's.
func trace(stack []uintptr) string {
	var b strings.Builder
	frames := runtime.CallersFrames(stack)
	for {
		f, more := frames.Next()
		if f.Function != "" && !ours(f.Function) && !strings.HasPrefix(f.Function, "runtime.") {
			fmt.Fprintf(&b, "\t%s\n\t\t%s:%d\n", f.Function, f.File, f.Line)
		}
		if !more {
			return b.String()
		}
	}
}

// ours tells the packages through which every acquisition goes.
func ours(function string) bool {
	for _, p := range []string{"internal/turnstile.", "mutex.", "fairlock.", "rwlock.", "semaphore."} {
		if strings.HasPrefix(function, "github.com/holdfast-go/holdfast/"+p) {
			return true
		}
	}
	return false
}
