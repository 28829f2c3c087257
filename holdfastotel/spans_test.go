package holdfastotel_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfastotel"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

func TestWaitAndHoldAreChildrenOfTheCallersSpan(t *testing.T) {
	t.Parallel()
	s := watch(t)
	client := holdfasttest.NewServer(t).Client(holdfast.Observe(s.observer))
	ctx, caller := s.tracer.Start(t.Context(), "caller")
	const worked = 5 * time.Millisecond
	token := int64(0)
	err := client.Semaphore("api", 5).Do(ctx, 3, func(ctx context.Context) error {
		held, _ := client.Semaphore("api", 5).Held(ctx)
		token = held.Token()
		time.Sleep(worked)
		return nil
	})
	caller.End()
	if err != nil {
		t.Fatal(err)
	}
	wait, hold := s.span("holdfast.wait"), s.span("holdfast.hold")
	for _, span := range []sdktrace.ReadOnlySpan{wait, hold} {
		if span.Parent().SpanID() != caller.SpanContext().SpanID() || span.SpanContext().TraceID() != caller.SpanContext().TraceID() {
			t.Errorf("%s is not the caller's", span.Name())
		}
		if span.Status().Code != codes.Unset {
			t.Errorf("the status of %s is %v", span.Name(), span.Status())
		}
		got := attrs(span)
		if got["holdfast.lock.kind"] != "sem" || got["holdfast.lock.name"] != "api" || got["holdfast.lock.weight"] != int64(3) {
			t.Errorf("%s has %v", span.Name(), got)
		}
	}
	if got := attrs(wait); got["holdfast.acquisition.how"] != "at_once" || got["holdfast.lock.token"] != token {
		t.Errorf("the wait has %v, and not token %d", got, token)
	}
	if took := hold.EndTime().Sub(hold.StartTime()); took < worked {
		t.Errorf("the hold took %v", took)
	}
	if took := wait.EndTime().Sub(wait.StartTime()); took <= 0 {
		t.Errorf("the wait took %v", took)
	}
	if whole := s.span("caller"); wait.StartTime().Before(whole.StartTime()) || hold.EndTime().After(whole.EndTime()) {
		t.Error("the spans reach beyond the caller's")
	}
}

func TestAWaitInVainSaysWhy(t *testing.T) {
	t.Parallel()
	for want, test := range map[string]struct {
		code codes.Code
		wait func(ctx context.Context, m *holdfast.Mutex) error
	}{
		"not_acquired": {codes.Unset, func(ctx context.Context, m *holdfast.Mutex) error {
			_, err := m.TryLock(ctx)
			return err
		}},
		"cancelled": {codes.Unset, func(ctx context.Context, m *holdfast.Mutex) error {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(10*time.Millisecond, cancel)
			_, err := m.Lock(ctx)
			return err
		}},
		"timeout": {codes.Error, func(ctx context.Context, m *holdfast.Mutex) error {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			defer cancel()
			_, err := m.Lock(ctx)
			return err
		}},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			s, server := watch(t), holdfasttest.NewServer(t)
			held := lock(t, t.Context(), server.Client().Mutex("m"))
			defer release(t, held, nil)
			if err := test.wait(t.Context(), server.Client(holdfast.Observe(s.observer)).Mutex("m")); err == nil {
				t.Fatal("acquired")
			}
			span := s.span("holdfast.wait")
			if got := attrs(span)["error.type"]; got != want {
				t.Errorf("error.type is %v", got)
			}
			if span.Status().Code != test.code {
				t.Errorf("the status is %v", span.Status())
			}
		})
	}
}

func TestTheSpanOfALostHoldIsAnError(t *testing.T) {
	t.Parallel()
	s := watch(t)
	client := holdfasttest.NewServer(t).Client(holdfast.Observe(s.observer))
	err := client.RWLock("rw").Do(t.Context(), func(ctx context.Context) error {
		held, _ := client.RWLock("rw").Held(ctx)
		holdfasttest.Lose(t, held)
		return context.Cause(ctx)
	})
	if !errors.Is(err, holdfast.ErrLost) {
		t.Fatal(err)
	}
	span := s.span("holdfast.hold")
	if got := attrs(span); got["error.type"] != "lost" || got["holdfast.lock.mode"] != "write" {
		t.Errorf("it has %v", got)
	}
	if status := span.Status(); status.Code != codes.Error || !strings.Contains(status.Description, "hold lost") {
		t.Errorf("its status is %v", status)
	}
	s.expect("holdfast.lock.losses", counts{"other rw write": 1})
}

func TestWhatIsNotSampledIsNotRecorded(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	s := watch(t, holdfastotel.TracerProvider(sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(spans), sdktrace.WithSampler(sdktrace.NeverSample()))))
	client := holdfasttest.NewServer(t).Client(holdfast.Observe(s.observer))
	if err := client.Mutex("m").Do(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if n := len(spans.Ended()); n != 0 {
		t.Errorf("%d spans", n)
	}
	s.expect("holdfast.lock.acquisitions", counts{"at_once mutex": 1})
}
