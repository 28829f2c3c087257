package container_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/integration/container"
	"github.com/holdfast-go/holdfast/integration/server"
)

func TestMain(m *testing.M) {
	code := m.Run()
	server.StopShared()
	os.Exit(code)
}

// announce names the server under test, so that a log proves what ran.
func announce(t *testing.T, c *redis.Client) {
	t.Helper()
	info, err := c.Info(t.Context(), "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	version := "unknown version"
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "redis_version:"); ok {
			version = v
		}
	}
	fmt.Printf("container: %s %s\n", container.Image(), version)
}

func TestContainerPausesAndResumes(t *testing.T) {
	s := container.Start(t, server.Args("--maxmemory", "20mb"))
	c := s.Client()
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	announce(t, c)
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Pause()
	hurried := s.Client(func(o *redis.Options) { o.ContextTimeoutEnabled = true; o.MaxRetries = -1 })
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := hurried.Get(ctx, "k").Err(); err == nil {
		t.Fatal("a paused container answered")
	}
	s.Resume()
	if v, err := c.Get(t.Context(), "k").Result(); v != "v" || err != nil {
		t.Fatalf("GET: %q, %v", v, err)
	}
	if got, err := c.ConfigGet(t.Context(), "maxmemory").Result(); got["maxmemory"] != "20971520" || err != nil {
		t.Fatalf("maxmemory: %v, %v", got, err)
	}
}

func TestKilledContainerRestartsEmptyOnTheSameAddress(t *testing.T) {
	s := container.Start(t)
	if err := s.Client().Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Pause() // a paused one must be killed as well
	s.Kill()
	s.Kill() // again, to no effect
	down := s.Client(func(o *redis.Options) { o.MaxRetries = -1; o.DialerRetries = 1 })
	if err := down.Ping(t.Context()).Err(); err == nil {
		t.Fatal("a killed container answered")
	}
	s.Restart()
	if err := s.Client().Get(t.Context(), "k").Err(); !errors.Is(err, redis.Nil) {
		t.Fatalf("GET after restart: %v, want redis.Nil", err)
	}
}
