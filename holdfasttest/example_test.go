package holdfasttest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

// report is the code under test.
func report(ctx context.Context, client *holdfast.Client, work func(ctx context.Context) error) error {
	return client.Mutex("report").Do(ctx, work)
}

// In your own package this is a test: func TestReportRunsOnOneHost(t *testing.T).
func ExampleNewServer() {
	_ = func(t *testing.T) {
		server := holdfasttest.NewServer(t)
		here, there := server.Client(), server.Client() // two processes
		err := report(t.Context(), here, func(context.Context) error {
			if _, err := there.Mutex("report").TryLock(t.Context()); !errors.Is(err, holdfast.ErrNotAcquired) {
				t.Errorf("another host works as well: %v", err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// Hours of renewals pass in virtual time.
func ExampleNewClient() {
	_ = func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := holdfasttest.NewClient(t)
			err := report(t.Context(), client, func(ctx context.Context) error {
				time.Sleep(5 * time.Hour)
				return context.Cause(ctx) // nil: still held
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// See your code stop when it loses its lock.
func ExampleLose() {
	_ = func(t *testing.T) {
		client := holdfasttest.NewClient(t)
		err := report(t.Context(), client, func(ctx context.Context) error {
			hold, _ := client.Mutex("report").Held(ctx)
			holdfasttest.Lose(t, hold)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("the loss was not noticed: %v", err)
		}
	}
}
