package holdfastotel

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"
)

// instruments are what the metrics are recorded with.
type instruments struct {
	wait, hold                     metric.Float64Histogram
	acquisitions, losses, renewals metric.Int64Counter
	waiting, held                  metric.Int64UpDownCounter
	subscriptions                  metric.Int64UpDownCounter
}

// The boundaries of the buckets, in seconds. A hand-over inside a client takes microseconds, one through Redis a round
// trip; a wait ends with somebody's hold, and a hold may be a job of hours.
var (
	waitBounds = []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}
	holdBounds = []float64{0.0001, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600}
)

func newInstruments(m metric.Meter) (instruments, error) {
	b := builder{meter: m}
	in := instruments{
		wait: b.histogram("holdfast.lock.wait.duration",
			"How long acquiring took, whether or not it gave a hold.", waitBounds),
		hold: b.histogram("holdfast.lock.hold.duration",
			"How long holds lasted, from the acquisition to the end of the release.", holdBounds),
		acquisitions: b.counter("holdfast.lock.acquisitions", "{acquisition}",
			"Acquisitions that have ended, by how the hold came or why there is none."),
		losses: b.counter("holdfast.lock.losses", "{loss}",
			"Locks that were lost while they were held, by cause."),
		renewals: b.counter("holdfast.lock.renewals", "{renewal}",
			"Attempts to renew a lease; one that failed is repeated until the deadline."),
		waiting: b.upDown("holdfast.lock.waiting", "{acquisition}",
			"Acquisitions under way."),
		held: b.upDown("holdfast.lock.held", "{hold}",
			"Holds that have not been released, re-entries included."),
		subscriptions: b.upDown("holdfast.subscription.up", "{subscription}",
			"Subscriptions that stand: at most one for each client, from its first wait on."),
	}
	return in, b.err
}

// builder makes instruments and gathers what went wrong.
type builder struct {
	meter metric.Meter
	err   error
}

func (b *builder) histogram(name, what string, bounds []float64) metric.Float64Histogram {
	h, err := b.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what),
		metric.WithExplicitBucketBoundaries(bounds...))
	b.note(name, err)
	return h
}

func (b *builder) counter(name, unit, what string) metric.Int64Counter {
	c, err := b.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
	b.note(name, err)
	return c
}

func (b *builder) upDown(name, unit, what string) metric.Int64UpDownCounter {
	c, err := b.meter.Int64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
	b.note(name, err)
	return c
}

func (b *builder) note(name string, err error) {
	if err != nil {
		b.err = errors.Join(b.err, fmt.Errorf("holdfastotel: instrument %s: %w", name, err))
	}
}
