package holdfasttest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

// A long job in virtual time: the watchdog renews it for hours, in milliseconds.
func TestHoursOfRenewalsPassAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := holdfasttest.NewServer(t)
		worker, other := server.Client(), server.Client()
		err := worker.Mutex("nightly").Do(t.Context(), func(ctx context.Context) error {
			for range 3 {
				time.Sleep(time.Hour)
				if _, err := other.Mutex("nightly").TryLock(ctx); !errors.Is(err, holdfast.ErrNotAcquired) {
					t.Errorf("another client got the lock: %v", err)
				}
			}
			return context.Cause(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		h, err := other.Mutex("nightly").TryLock(t.Context())
		if err != nil {
			t.Fatalf("not free after the job: %v", err)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLoseEndsTheHoldAtOnce(t *testing.T) {
	client := holdfasttest.NewClient(t)
	var held *holdfast.Hold
	err := client.Mutex("m").Do(t.Context(), func(ctx context.Context) error {
		held, _ = client.Mutex("m").Held(ctx)
		holdfasttest.Lose(t, held)
		if !errors.Is(context.Cause(ctx), holdfast.ErrLost) {
			t.Errorf("the context's cause is %v", context.Cause(ctx))
		}
		return nil
	})
	if !errors.Is(err, holdfast.ErrLost) || held.Valid() {
		t.Fatalf("Do returned %v, valid %v", err, held.Valid())
	}
	next, err := client.Mutex("m").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if next.Token() <= held.Token() {
		t.Errorf("token %d after %d", next.Token(), held.Token())
	}
	_ = next.Release(t.Context())
}

// recorder is a testing.TB that remembers failures instead of failing.
type recorder struct {
	testing.TB
	cleanups []func()
	errors   []string
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func TestALeakedHoldIsNamedWithItsPlace(t *testing.T) {
	r := &recorder{TB: t}
	client := holdfasttest.NewClient(r)
	if _, err := client.Mutex("forgotten").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
	if len(r.errors) != 1 || !strings.Contains(r.errors[0], "forgotten") || !strings.Contains(r.errors[0], "holdfasttest_test.go:") {
		t.Fatalf("the leak was reported as %q", r.errors)
	}
}
