// Package holdfastotel tells OpenTelemetry what holdfast clients do: metrics of waiting, holding, losing and renewing, and
// spans of waits and holds.
//
//	observer, err := holdfastotel.Observer()
//	…
//	client, err := holdfast.New(rdb, holdfast.Observe(observer))
//
// The README lists the instruments and spans with their attributes. Their names are part of what Semantic Versioning
// covers.
//
// # Spans
//
// Both spans are made when they are over, so what runs inside them is not below them in the trace but beside. A wait is a
// child of the span in the context of the acquiring call, a hold of the one in the context given to Release: with Do these
// are the same. A hold that is never released has no span.
//
// # Cost
//
// Sets of attributes are made beforehand. Nothing is done for a span that is not recorded beyond asking for it, and nothing
// here waits: what an exporter does, it does in its own goroutines.
package holdfastotel
