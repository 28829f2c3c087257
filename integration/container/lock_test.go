package container_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/container"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/internal/config"
)

// lockClient returns a client that is closed, and must be able to release everything, at the end.
func lockClient(t *testing.T, s *server.Server, options ...holdfast.Option) *holdfast.Client {
	t.Helper()
	client, err := holdfast.New(s.Client(), append(options, holdfast.Logger(nil))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		if err := client.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return client
}

func TestLocksOnAServerInAContainer(t *testing.T) {
	s := container.Start(t)
	announce(t, s.Client())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	t.Run("two clients exclude each other", func(t *testing.T) { exclude(ctx, t, s) })
	t.Run("a push wakes a waiter", func(t *testing.T) { pushWakes(ctx, t, s) })
	t.Run("a paused server's holder is told", func(t *testing.T) { pauseIsTold(ctx, t, s) })
}

func exclude(ctx context.Context, t *testing.T, s *server.Server) {
	var inside atomic.Int32
	var workers sync.WaitGroup
	for range 2 {
		m := lockClient(t, s).Mutex("exclusion")
		for range 5 {
			workers.Go(func() {
				for range 20 {
					err := m.Do(ctx, func(context.Context) error {
						if n := inside.Add(1); n != 1 {
							t.Errorf("%d inside", n)
						}
						inside.Add(-1)
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	workers.Wait()
}

// Polls are half a minute apart and the lease lasts a minute: what is quicker is the push.
func pushWakes(ctx context.Context, t *testing.T, s *server.Server) {
	rare := func(c *config.Config) { c.Window, c.Claim = 90*time.Second, 90*time.Second }
	holder := lockClient(t, s, rare).Mutex("push", holdfast.Lease(time.Minute))
	waiter := lockClient(t, s, rare).Mutex("push", holdfast.Lease(time.Minute))
	hold, err := holder.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		hold, err := waiter.Lock(ctx)
		if err == nil {
			err = hold.Release(ctx)
		}
		served <- err
	}()
	for queue := 0; queue == 0; time.Sleep(5 * time.Millisecond) {
		state, err := holder.Inspect(ctx)
		if err != nil {
			t.Fatal(err)
		}
		queue = len(state.Queue)
	}
	if err := hold.Release(ctx); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(2 * time.Second):
		t.Error("the waiter sleeps on")
	}
}

func pauseIsTold(ctx context.Context, t *testing.T, s *server.Server) {
	const lease = 2 * time.Second
	m := lockClient(t, s).Mutex("pause", holdfast.Lease(lease))
	hold, err := m.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s.Pause()
	serverEnds := hold.Deadline().Add(lease / 10) // the margin
	<-hold.Done()
	if late := time.Since(serverEnds); late > 0 {
		t.Errorf("told %v after the server gave the name up", late)
	}
	if err := hold.Err(); !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("the hold ended with %v", err)
	}
	s.Resume()
	again, err := m.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if again.Token() <= hold.Token() {
		t.Errorf("token %d after %d", again.Token(), hold.Token())
	}
	if err := hold.Release(ctx); !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("release of the lost hold: %v", err)
	}
	if !again.Valid() {
		t.Errorf("its release touched its successor: %v", again.Err())
	}
	if err := again.Release(ctx); err != nil {
		t.Error(err)
	}
}
