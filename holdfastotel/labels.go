package holdfastotel

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/holdfast-go/holdfast/hold"
)

// schema is the version of the semantic conventions that error.type is taken from.
const schema = semconv.SchemaURL

// The attributes that are ours.
const (
	kindKey   = attribute.Key("holdfast.lock.kind")
	modeKey   = attribute.Key("holdfast.lock.mode")
	groupKey  = attribute.Key("holdfast.lock.group")
	nameKey   = attribute.Key("holdfast.lock.name")   // on spans only
	weightKey = attribute.Key("holdfast.lock.weight") // likewise
	tokenKey  = attribute.Key("holdfast.lock.token")  // likewise
	howKey    = attribute.Key("holdfast.acquisition.how")
	causeKey  = attribute.Key("holdfast.loss.cause")
)

// labels are attributes in the forms that instruments take: recording with them makes no new ones.
type labels struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

func newLabels(attrs ...attribute.KeyValue) *labels {
	o := metric.WithAttributeSet(attribute.NewSet(attrs...))
	return &labels{add: []metric.AddOption{o}, record: []metric.RecordOption{o}}
}

// labeller finds the labels of what happened to a lock.
type labeller struct {
	group func(name string) string // may be nil
	ready map[event]*labels        // without a group; not changed any more
}

// event is what labels depend on, but for the group.
type event struct {
	kind, mode string
	outcome    outcome
}

// outcome is one more attribute; none is the zero value.
type outcome struct {
	key   attribute.Key
	value string
}

var none outcome

func newLabeller(group func(string) string) labeller {
	r := labeller{group: group}
	if group != nil {
		return r
	}
	r.ready = make(map[event]*labels)
	for _, l := range []hold.Lock{{Kind: "mutex"}, {Kind: "fair"}, {Kind: "rw", Weight: 1}, {Kind: "rw", Weight: 2}, {Kind: "sem"}} {
		for _, o := range outcomes() {
			r.ready[event{l.Kind, l.Mode(), o}] = newLabels(r.attributes(l, o)...)
		}
	}
	return r
}

// of returns the labels of an event. What is not there beforehand is made: groups, and what a later holdfast adds.
func (r *labeller) of(l hold.Lock, o outcome) *labels {
	if found := r.ready[event{l.Kind, l.Mode(), o}]; found != nil {
		return found
	}
	return newLabels(r.attributes(l, o)...)
}

// attributes are those that metrics and spans have in common.
func (r *labeller) attributes(l hold.Lock, o outcome) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 8) // room for what a span adds
	attrs = append(attrs, kindKey.String(l.Kind))
	if mode := l.Mode(); mode != "" {
		attrs = append(attrs, modeKey.String(mode))
	}
	if o != none {
		attrs = append(attrs, o.key.String(o.value))
	}
	if r.group != nil {
		if group := r.group(l.Name); group != "" {
			attrs = append(attrs, groupKey.String(group))
		}
	}
	return attrs
}
