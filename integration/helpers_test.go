package integration

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/config"
)

// newClient returns a holdfast client that is closed, and must be able to release everything, at the end.
func newClient(t testing.TB, rdb redis.UniversalClient, options ...holdfast.Option) *holdfast.Client {
	t.Helper()
	quiet := holdfast.Logger(slog.New(slog.DiscardHandler))
	client, err := holdfast.New(rdb, append([]holdfast.Option{quiet}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := client.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return client
}

// slowPolls makes polling so rare that only a push can be what woke a waiter within seconds. Leases under
// test must then be long as well.
func slowPolls() holdfast.Option {
	return func(c *config.Config) { c.Window, c.Claim = 90*time.Second, 90*time.Second }
}

// unique returns a name that no other test uses, nor another run on the same server.
func unique(t testing.TB) string {
	return strings.ReplaceAll(t.Name(), "/", ".") + "." + time.Now().Format("150405.000000000")
}

// eventually waits until the condition holds, and fails the test if it does not within the time.
func eventually(t testing.TB, within time.Duration, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}

// within returns a context that ends after d, and with the test.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// waiting reports how many live waiters a name has.
func waiting(t testing.TB, inspect func(context.Context) (holdfast.State, error)) int {
	t.Helper()
	state, err := inspect(within(t, 5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return len(state.Queue)
}
