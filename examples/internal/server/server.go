// Package server gives an example a Redis: the one that REDIS_ADDR names, or one embedded in the process, so
// that the examples run on a machine with nothing but Go.
package server

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-go/holdfast"
)

// Server is the Redis that an example runs on.
type Server struct {
	Addr     string        // for Connect, also in other processes
	Redis    *redis.Client // of this process; ends with the server
	embedded *miniredis.Miniredis
	clients  []*holdfast.Client
}

// Main is the main function of an example. It parses the flags and calls run with a server, and with a context that an
// interrupt ends. An error is printed and makes the exit status 1.
func Main(name string, run func(ctx context.Context, s *Server) error) {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := serve(ctx, run)
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, run func(ctx context.Context, s *Server) error) error {
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	s, err := Start(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	return run(ctx, s)
}

// Start returns the server at REDIS_ADDR, which is host:port or a redis:// URL, or starts one on the loopback
// interface if the variable is not set. It makes sure that the server answers.
func Start(ctx context.Context) (*Server, error) {
	s := &Server{Addr: os.Getenv("REDIS_ADDR")}
	if s.Addr == "" {
		mini, err := miniredis.Run()
		if err != nil {
			return nil, fmt.Errorf("start the embedded server: %w", err)
		}
		mini.ClockTTL(true) // without it keys never expire
		s.Addr, s.embedded = mini.Addr(), mini
	}
	var err error
	if s.Redis, err = Connect(s.Addr); err != nil {
		return nil, err
	}
	if err := s.Redis.Ping(ctx).Err(); err != nil {
		s.Close()
		return nil, fmt.Errorf("%v does not answer: %w", s, err)
	}
	return s, nil
}

// Close closes the clients and the connections, and stops the server if it is the embedded one.
func (s *Server) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second) // a fresh one: that of the run may be over
	defer cancel()
	for _, client := range s.clients {
		_ = client.Close(ctx)
	}
	_ = s.Redis.Close()
	if s.embedded != nil {
		s.embedded.Close()
	}
}

// Client returns what a service has that runs in this process: a holdfast client of its own. Two of them are strangers
// to each other, like those of two processes. It ends with the server.
func (s *Server) Client(label string) (*holdfast.Client, error) {
	client, err := holdfast.New(s.Redis, holdfast.Label(label))
	if err == nil {
		s.clients = append(s.clients, client)
	}
	return client, err
}

// String describes the server for a headline, without the password that a URL may have.
func (s *Server) String() string {
	if s.embedded != nil {
		return "an embedded server at " + s.Addr + " (REDIS_ADDR=host:port takes yours)"
	}
	if u, err := url.Parse(s.Addr); err == nil && u.Scheme != "" {
		return "Redis at " + u.Redacted()
	}
	return "Redis at " + s.Addr
}

// Connect returns a go-redis client of the server at addr. It does no I/O.
func Connect(addr string) (*redis.Client, error) {
	logging.Disable() // go-redis reports each failed dial; an example says once what went wrong
	if !strings.Contains(addr, "://") {
		return redis.NewClient(&redis.Options{Addr: addr}), nil
	}
	options, err := redis.ParseURL(addr)
	if err != nil {
		return nil, fmt.Errorf("REDIS_ADDR: %w", err)
	}
	return redis.NewClient(options), nil
}

// Unique returns name with a random suffix: a server that REDIS_ADDR names may be somebody's, and two runs of
// an example must not meet there.
func Unique(name string) string { return name + ":" + strings.ToLower(rand.Text()[:8]) }
