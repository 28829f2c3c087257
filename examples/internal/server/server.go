// Package server gives an example a Redis: the one that REDIS_ADDR names, or one embedded in the process, so
// that the examples run on a machine with nothing but Go.
package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// Server is the Redis that an example runs on.
type Server struct {
	Addr     string // for Connect, also in other processes
	embedded *miniredis.Miniredis
}

// Start returns the server at REDIS_ADDR, which is host:port or a redis:// URL, or starts one on the loopback
// interface if the variable is not set. It makes sure that the server answers.
func Start(ctx context.Context) (*Server, error) {
	if addr := os.Getenv("REDIS_ADDR"); addr != "" {
		s := &Server{Addr: addr}
		if err := s.ping(ctx); err != nil {
			return nil, err
		}
		return s, nil
	}
	mini, err := miniredis.Run()
	if err != nil {
		return nil, fmt.Errorf("start the embedded server: %w", err)
	}
	mini.ClockTTL(true) // without it keys never expire
	return &Server{Addr: mini.Addr(), embedded: mini}, nil
}

func (s *Server) ping(ctx context.Context) error {
	rdb, err := Connect(s.Addr)
	if err != nil {
		return err
	}
	defer rdb.Close()
	if err := rdb.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("%v does not answer: %w", s, err)
	}
	return nil
}

// Close stops the server if it is the embedded one.
func (s *Server) Close() {
	if s.embedded != nil {
		s.embedded.Close()
	}
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
