package server

import (
	"errors"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Server is a server that one test owns, or its view of the shared one.
// Methods fail the test on trouble, so call them from its goroutine.
type Server struct {
	t        testing.TB
	addr     string
	instance Instance // nil for a shared server, which nobody may disturb
}

// Start runs a server of the test's own, empty and without persistence, and
// stops it when the test ends.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	launch, err := locate()
	if err != nil {
		missing(t, err)
	}
	return StartWith(t, launch, opts...)
}

// StartWith is Start with a given way to launch the server.
func StartWith(t testing.TB, launch Launcher, opts ...Option) *Server {
	t.Helper()
	var c config
	for _, apply := range opts {
		apply(&c)
	}
	instance, err := launch(c.args)
	if errors.Is(err, ErrMissing) {
		missing(t, err)
	}
	if err != nil {
		t.Fatalf("starting a server: %v", err)
	}
	t.Cleanup(func() {
		if err := instance.Stop(); err != nil {
			t.Errorf("stopping the server: %v", err)
		}
	})
	return &Server{t: t, addr: instance.Addr(), instance: instance}
}

// missing skips the test. In CI it fails it: there a silent skip would let a
// broken setup pass as a green run.
func missing(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	t.Skip(err)
}

// Addr returns host:port. It stays the same over Kill and Restart.
func (s *Server) Addr() string { return s.addr }

// Client returns a new client of the server, closed when the test ends.
func (s *Server) Client(opts ...func(*redis.Options)) *redis.Client {
	s.t.Helper()
	o := &redis.Options{Addr: s.addr}
	for _, apply := range opts {
		apply(o)
	}
	c := redis.NewClient(o)
	s.t.Cleanup(func() { _ = c.Close() }) // the test may have closed it already
	return c
}

// Pause freezes the server: connections stay open, new ones are accepted by
// the kernel, and what they send is executed after Resume.
func (s *Server) Pause() {
	s.t.Helper()
	s.must("Pause", Instance.Pause)
}

// Resume lets a paused server go on.
func (s *Server) Resume() {
	s.t.Helper()
	s.must("Resume", Instance.Resume)
}

// Kill ends the server at once, paused or not; its connections break. Killing
// a dead server does nothing.
func (s *Server) Kill() {
	s.t.Helper()
	s.must("Kill", Instance.Kill)
}

// Restart kills the server if it still runs and starts it again on the same
// address with the same arguments. It comes back empty.
func (s *Server) Restart() {
	s.t.Helper()
	s.must("Restart", Instance.Restart)
}

func (s *Server) must(name string, do func(Instance) error) {
	s.t.Helper()
	if s.instance == nil {
		s.t.Fatalf("%s on the shared server: other tests use it; call server.Start", name)
	}
	if err := do(s.instance); err != nil {
		s.t.Fatalf("%s: %v", name, err)
	}
}
