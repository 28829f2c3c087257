package holdfastotel_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfastotel"
)

// seen is what reached OpenTelemetry.
type seen struct {
	t        *testing.T
	observer holdfast.Observer
	reader   *sdkmetric.ManualReader
	spans    *tracetest.SpanRecorder
	tracer   trace.Tracer
}

// watch makes an observer, and sees to it that at the end of the test nothing is held, waited for or subscribed to.
func watch(t *testing.T, options ...holdfastotel.Option) *seen {
	t.Helper()
	s := &seen{t: t, reader: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(s.spans))
	s.tracer = tracers.Tracer("test")
	own := []holdfastotel.Option{
		holdfastotel.MeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.reader))),
		holdfastotel.TracerProvider(tracers),
	}
	observer, err := holdfastotel.Observer(append(own, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	s.observer = observer
	t.Cleanup(func() { // runs after the clients have been closed, which were made later
		for _, name := range []string{"holdfast.lock.held", "holdfast.lock.waiting", "holdfast.subscription.up"} {
			for labels, value := range s.points(name) {
				if value != 0 {
					t.Errorf("in the end %s of %s is %d", name, labels, value)
				}
			}
		}
	})
	return s
}

// points gives the values of a metric by their attributes, "a=b c=d"; of a histogram how many there are.
func (s *seen) points(name string) map[string]int64 {
	s.t.Helper()
	var all metricdata.ResourceMetrics
	if err := s.reader.Collect(context.Background(), &all); err != nil {
		s.t.Fatal(err)
	}
	points := make(map[string]int64)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					points[words(p.Attributes.ToSlice()...)] = p.Value
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					points[words(p.Attributes.ToSlice()...)] = int64(p.Count)
				}
			default:
				s.t.Fatalf("%s is a %T", name, data)
			}
		}
	}
	return points
}

// words are attributes in short: "mutex at_once" for a kind and a how.
func words(attrs ...attribute.KeyValue) string {
	var ws []string
	for _, a := range attrs {
		ws = append(ws, a.Value.String())
	}
	slices.Sort(ws)
	return strings.Join(ws, " ")
}

// expect compares all values of a metric but those that are 0.
func (s *seen) expect(name string, want map[string]int64) {
	s.t.Helper()
	got := s.points(name)
	maps.DeleteFunc(got, func(_ string, value int64) bool { return value == 0 })
	if !maps.Equal(got, want) {
		s.t.Errorf("%s is %v, want %v", name, got, want)
	}
}

// eventually waits until a value of a metric is reached.
func (s *seen) eventually(name, labels string, want int64) {
	s.t.Helper()
	for end := time.Now().Add(10 * time.Second); s.points(name)[labels] < want; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%s is %v, not %d for %q", name, s.points(name), want, labels)
		}
	}
}

// span returns the only span of a name.
func (s *seen) span(name string) sdktrace.ReadOnlySpan {
	s.t.Helper()
	var found []sdktrace.ReadOnlySpan
	for _, span := range s.spans.Ended() {
		if span.Name() == name {
			found = append(found, span)
		}
	}
	if len(found) != 1 {
		s.t.Fatalf("%d spans %s", len(found), name)
	}
	return found[0]
}

// attrs are a span's attributes.
func attrs(span sdktrace.ReadOnlySpan) map[string]any {
	all := make(map[string]any)
	for _, a := range span.Attributes() {
		all[string(a.Key)] = a.Value.AsInterface()
	}
	return all
}
