package server

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// shared is the server of this test process.
var shared struct {
	mu       sync.Mutex // guards the fields
	instance Instance
	err      error // why it could not be started; the tests after the first need not try again
}

// Shared returns the server that all tests of this process share. A test may
// only touch keys under a prefix of its own and must send nothing that acts on
// the whole server: with REDIS_ADDR set, it is the server at that address, and
// may be somebody's. Otherwise the first call starts it, and TestMain ends it
// with StopShared.
func Shared(t testing.TB) *Server {
	t.Helper()
	if addr := os.Getenv("REDIS_ADDR"); addr != "" {
		pingGiven(t, addr)
		return &Server{t: t, addr: addr}
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.instance == nil && shared.err == nil {
		shared.instance, shared.err = launchShared()
	}
	if errors.Is(shared.err, ErrMissing) {
		missing(t, shared.err)
	}
	if shared.err != nil {
		t.Fatalf("starting the shared server: %v", shared.err)
	}
	return &Server{t: t, addr: shared.instance.Addr()}
}

func launchShared() (Instance, error) {
	launch, err := locate()
	if err != nil {
		return nil, err
	}
	return launch(nil)
}

// StopShared stops the shared server, if one was started; the one at
// REDIS_ADDR is left alone. Call it in TestMain after m.Run:
//
//	code := m.Run()
//	server.StopShared()
//	os.Exit(code)
func StopShared() {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.instance != nil {
		_ = shared.instance.Stop() // the process ends anyway
		shared.instance = nil
	}
}

func pingGiven(t testing.TB, addr string) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := client.Ping(ctx).Err(); err != nil {
		t.Fatalf("REDIS_ADDR=%s: %v", addr, err)
	}
}
