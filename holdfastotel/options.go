package holdfastotel

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast"
)

// Option configures an Observer. A bad value is an error from Observer.
type Option func(*config)

type config struct {
	meters  metric.MeterProvider
	tracers trace.TracerProvider
	group   func(name string) string
	err     error
}

// MeterProvider sets where the metrics go, by default to otel.GetMeterProvider(). The providers in the noop packages of
// OpenTelemetry, here and for TracerProvider, turn one half off.
func MeterProvider(p metric.MeterProvider) Option {
	return func(c *config) {
		c.meters = p
		c.require(p != nil, "MeterProvider")
	}
}

// TracerProvider sets where the spans go, by default to otel.GetTracerProvider().
func TracerProvider(p trace.TracerProvider) Option {
	return func(c *config) {
		c.tracers = p
		c.require(p != nil, "TracerProvider")
	}
}

// Group adds the attribute "holdfast.lock.group" to metrics and spans: what f makes of a lock's name, such as "orders" of
// "orders:42"; nothing for the empty string. Every group has its own time series, so f must return few different ones:
// returning the name itself is right only where names contain no ids. It must be quick, and may be called at the same
// time. By default the metrics of all names of a kind are one, and only spans tell the name.
func Group(f func(name string) string) Option {
	return func(c *config) {
		c.group = f
		c.require(f != nil, "Group")
	}
}

func (c *config) require(ok bool, option string) {
	if !ok {
		c.err = errors.Join(c.err, fmt.Errorf("holdfastotel: %w: %s of nil", holdfast.ErrInvalid, option))
	}
}

func configure(options []Option) config {
	c := config{meters: otel.GetMeterProvider(), tracers: otel.GetTracerProvider()}
	for _, o := range options {
		if o != nil {
			o(&c)
		}
	}
	return c
}
