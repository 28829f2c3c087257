package holdfastotel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/hold"
)

// The names of the spans. What varies is in attributes.
const (
	waitSpan = "holdfast.wait"
	holdSpan = "holdfast.hold"
)

// span makes the span of what took so long until now, and ended with the outcome and err. It is internal, not a call of
// a database client: most of a wait is spent on others' holds, and that is not the latency of Redis.
func (o *observer) span(ctx context.Context, name string, took time.Duration, l hold.Lock, as outcome, err error, more ...attribute.KeyValue) {
	now := time.Now()
	_, s := o.tracer.Start(ctx, name, trace.WithTimestamp(now.Add(-took)))
	defer s.End(trace.WithTimestamp(now))
	if !s.IsRecording() {
		return
	}
	attrs := append(o.attributes(l, as), nameKey.String(l.Name))
	if l.Kind == "sem" {
		attrs = append(attrs, weightKey.Int64(l.Weight))
	}
	s.SetAttributes(append(attrs, more...)...)
	if err != nil && as.value != notAcquired && as.value != cancelled { // these are answers: others hold it, or the caller left
		s.SetStatus(codes.Error, err.Error())
	}
}
