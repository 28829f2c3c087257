package holdfastotel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/hold"
)

// scope is the name under which OpenTelemetry knows this package.
const scope = "github.com/holdfast-go/holdfast/holdfastotel"

// Observer returns an observer for holdfast.Observe. Several clients may share it; their metrics are then sums. It
// fails with ErrInvalid for a bad option, and with the MeterProvider's error if that refuses an instrument.
func Observer(options ...Option) (holdfast.Observer, error) {
	c := configure(options)
	if c.err != nil {
		return holdfast.Observer{}, c.err
	}
	meters, err := newInstruments(c.meters.Meter(scope, metric.WithSchemaURL(schema)))
	if err != nil {
		return holdfast.Observer{}, err
	}
	o := &observer{
		instruments: meters, labeller: newLabeller(c.group),
		tracer: c.tracers.Tracer(scope, trace.WithSchemaURL(schema)),
	}
	return holdfast.Observer{
		Acquiring: o.acquiring, Acquired: o.acquired, NotAcquired: o.notAcquired,
		Released: o.released, Lost: o.lost, Renewed: o.renewed, Subscribed: o.subscribed,
	}, nil
}

// observer is never changed once it is made: its methods run at the same time.
type observer struct {
	instruments
	labeller
	tracer trace.Tracer
}

func (o *observer) acquiring(ctx context.Context, l hold.Lock) {
	o.waiting.Add(ctx, 1, o.of(l, none).add...)
}

func (o *observer) acquired(ctx context.Context, l hold.Lock, a hold.Acquisition) {
	plain := o.of(l, none)
	o.waiting.Add(ctx, -1, plain.add...)
	o.held.Add(ctx, 1, plain.add...)
	o.wait.Record(ctx, a.Waited.Seconds(), plain.record...)
	came := how(a.How)
	o.acquisitions.Add(ctx, 1, o.of(l, came).add...)
	o.span(ctx, waitSpan, a.Waited, l, came, nil, tokenKey.Int64(a.Token))
}

func (o *observer) notAcquired(ctx context.Context, l hold.Lock, waited time.Duration, err error) {
	why := failure(err)
	failed := o.of(l, why)
	o.waiting.Add(ctx, -1, o.of(l, none).add...)
	o.wait.Record(ctx, waited.Seconds(), failed.record...)
	o.acquisitions.Add(ctx, 1, failed.add...)
	o.span(ctx, waitSpan, waited, l, why, err)
}

// released is also told of the release of a hold that was lost before: only then is its caller known to be done.
func (o *observer) released(ctx context.Context, l hold.Lock, held time.Duration, err error) {
	o.held.Add(ctx, -1, o.of(l, none).add...)
	why := failure(err)
	o.hold.Record(ctx, held.Seconds(), o.of(l, why).record...)
	o.span(ctx, holdSpan, held, l, why, err)
}

func (o *observer) lost(l hold.Lock, _ time.Duration, cause error) {
	o.losses.Add(context.Background(), 1, o.of(l, loss(cause)).add...)
}

func (o *observer) renewed(l hold.Lock, err error) {
	o.renewals.Add(context.Background(), 1, o.of(l, failure(err)).add...)
}

func (o *observer) subscribed(up bool) {
	change := int64(-1)
	if up {
		change = 1
	}
	o.subscriptions.Add(context.Background(), change)
}
