package holdfastotel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/hold"
	"github.com/holdfast-go/holdfast/holdfastotel"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

func TestNilIsRefusedByName(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]holdfastotel.Option{
		"MeterProvider":  holdfastotel.MeterProvider(nil),
		"TracerProvider": holdfastotel.TracerProvider(nil),
		"Group":          holdfastotel.Group(nil),
	} {
		_, err := holdfastotel.Observer(option, nil)
		if !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// global sets the global provider, which OpenTelemetry allows only once to take effect on what was made before.
var global = sync.OnceValue(func() *sdkmetric.ManualReader {
	reader := sdkmetric.NewManualReader()
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	return reader
})

// Services often make their clients before their providers.
func TestGlobalProvidersMayBeSetLater(t *testing.T) {
	observer, err := holdfastotel.Observer()
	if err != nil {
		t.Fatal(err)
	}
	s := &seen{t: t, reader: global()}
	before := s.points("holdfast.lock.acquisitions")["at_once mutex"] // of this test's earlier runs
	client := holdfasttest.NewServer(t).Client(holdfast.Observe(observer))
	if err := client.Mutex("m").Do(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	s.expect("holdfast.lock.acquisitions", counts{"at_once mutex": before + 1})
}

func TestGroupsDivideTheMetrics(t *testing.T) {
	t.Parallel()
	s := watch(t, holdfastotel.Group(func(name string) string {
		group, _, ok := strings.Cut(name, ":")
		if !ok {
			return ""
		}
		return group
	}))
	client := holdfasttest.NewServer(t).Client(holdfast.Observe(s.observer))
	for _, name := range []string{"orders:1", "orders:2", "users:1", "plain"} {
		if err := client.Mutex(name).Do(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	s.expect("holdfast.lock.acquisitions", counts{"at_once mutex orders": 2, "at_once mutex users": 1, "at_once mutex": 1})
	s.expect("holdfast.lock.hold.duration", counts{"mutex orders": 2, "mutex users": 1, "mutex": 1})
}

func TestLossesAreSortedByTheirReasonNotByTheName(t *testing.T) {
	t.Parallel()
	s := watch(t)
	for _, reason := range []string{"the server gave the name to another", "the server gave it anew", "the server knows another tenure"} {
		s.observer.Lost(hold.Lock{Kind: "fair"}, 0, fmt.Errorf("lock %q: %w", "freed by force",
			fmt.Errorf("%w: %s", holdfast.ErrLost, reason)))
	}
	s.observer.Lost(hold.Lock{Kind: "fair"}, 0, fmt.Errorf("lock %q: %w", "hold lost: freed by force",
		fmt.Errorf("%w: a new reason", holdfast.ErrLost)))
	s.observer.Lost(hold.Lock{Kind: "fair"}, 0, holdfast.ErrLost)
	s.expect("holdfast.lock.losses", counts{"fair superseded": 3, "fair other": 2})
}

func TestTheReasonNearestToTheFaultCounts(t *testing.T) {
	t.Parallel()
	s, ctx, l := watch(t), t.Context(), hold.Lock{Kind: "mutex", Name: "m"}
	for _, err := range []error{
		fmt.Errorf("%w: %w", context.DeadlineExceeded, holdfast.ErrUnavailable),
		fmt.Errorf("%w: wait limit reached: %w", holdfast.ErrNotAcquired, holdfast.ErrUnavailable),
		errors.New("something else"),
	} {
		s.observer.Acquiring(ctx, l)
		s.observer.NotAcquired(ctx, l, time.Second, err)
	}
	s.expect("holdfast.lock.acquisitions", counts{"mutex unavailable": 2, "_OTHER mutex": 1})
}

// A later holdfast may know more kinds and ways.
func TestWhatIsUnknownIsCountedToo(t *testing.T) {
	t.Parallel()
	s, ctx, l := watch(t), t.Context(), hold.Lock{Kind: "barrier"}
	s.observer.Acquiring(ctx, l)
	s.observer.Acquired(ctx, l, hold.Acquisition{How: hold.How(99)})
	s.observer.Released(ctx, l, time.Second, nil)
	s.expect("holdfast.lock.acquisitions", counts{"barrier other": 1})
}

func TestMetricsAreRecordedWithoutAllocations(t *testing.T) {
	s, ctx, l := watch(t), t.Context(), hold.Lock{Kind: "rw", Name: "m", Weight: 1}
	if n := testing.AllocsPerRun(100, func() {
		s.observer.Acquiring(ctx, l)
		s.observer.Renewed(l, holdfast.ErrUnavailable)
		s.observer.Subscribed(true)
		s.observer.Subscribed(false)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	for range s.points("holdfast.lock.waiting")["read rw"] {
		s.observer.NotAcquired(ctx, l, 0, holdfast.ErrClosed)
	}
}

func BenchmarkAcquireAndRelease(b *testing.B) {
	observer, err := holdfastotel.Observer(
		holdfastotel.MeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))),
		holdfastotel.TracerProvider(tracenoop.NewTracerProvider()))
	if err != nil {
		b.Fatal(err)
	}
	ctx, l := context.Background(), hold.Lock{Kind: "mutex", Name: "m"}
	b.ReportAllocs()
	for b.Loop() {
		observer.Acquiring(ctx, l)
		observer.Acquired(ctx, l, hold.Acquisition{How: hold.Passed, Waited: time.Millisecond})
		observer.Released(ctx, l, time.Millisecond, nil)
	}
}
