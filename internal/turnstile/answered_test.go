package turnstile

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/hold"
	"github.com/holdfast-go/holdfast/internal/scripts"
	"github.com/holdfast-go/holdfast/internal/tenure"
	"github.com/holdfast-go/holdfast/watchdog"
)

func newTestHall(t *testing.T) *Hall {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	call := scripts.NewCaller(rdb, "p:")
	h := NewHall(Config{
		Caller: call, Client: "c", Logger: slog.New(slog.DiscardHandler), Window: DefaultWindow, Claim: DefaultClaim,
	})
	h.SetWatchdog(watchdog.New(call, h.Warn, nil))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := h.Close(ctx); err != nil {
			t.Error(err)
		}
		_ = rdb.Close()
	})
	return h
}

// A hold is freed by force, and a poll that was late is refused before the message of it comes: the hold is lost, and
// the name goes on.
func TestARefusalWhileHoldingIsALoss(t *testing.T) {
	h := newTestHall(t)
	settings, _ := hold.Resolve()
	r := &Request{Name: "n", Key: "p:mutex:n", Weight: 1, Capacity: 1, Settings: &settings, Reentrant: true, OneTicket: true}
	held, err := h.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	o := held.Keeper().(*owner)
	o.turn.mu.Lock()
	o.departed(tenure.Now())
	o.answered(tenure.Now(), scripts.Acquired{Status: scripts.Refused}, nil)
	o.turn.mu.Unlock()
	if !errors.Is(held.Err(), tenure.ErrLost) {
		t.Errorf("the hold's error is %v", held.Err())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	next, err := h.Acquire(ctx, r)
	if err != nil {
		t.Fatalf("the name does not go on: %v", err)
	}
	if err := next.Release(ctx); err != nil {
		t.Error(err)
	}
}

func TestASecondCloseObeysItsContext(t *testing.T) {
	h := newTestHall(t)
	settings, _ := hold.Resolve()
	r := &Request{Name: "n", Key: "p:mutex:n", Weight: 1, Capacity: 1, Settings: &settings}
	inside, leave, left := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		left <- h.Do(context.Background(), r, func(context.Context) error {
			close(inside)
			<-leave
			return nil
		})
	}()
	<-inside
	first := make(chan error, 1)
	go func() { first <- h.Close(context.Background()) }()
	<-h.open.Done()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := h.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the second Close returned %v", err)
	}
	close(leave)
	if err := errors.Join(<-left, <-first); err != nil {
		t.Error(err)
	}
}
