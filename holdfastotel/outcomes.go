package holdfastotel

import (
	"context"
	"errors"
	"strings"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/hold"
)

// hows are the ways to a hold. They are listed, not asked for: a later holdfast may know more.
var hows = map[hold.How]outcome{
	hold.AtOnce:    {howKey, "at_once"},
	hold.Pushed:    {howKey, "pushed"},
	hold.Polled:    {howKey, "polled"},
	hold.Passed:    {howKey, "passed"},
	hold.Reentered: {howKey, "reentered"},
}

func how(h hold.How) outcome {
	if o, ok := hows[h]; ok {
		return o
	}
	return outcome{howKey, "other"}
}

// Values of error.type that are no faults.
const (
	notAcquired = "not_acquired"
	cancelled   = "cancelled"
)

// failures are the values of error.type. An error may match several, as that of a wait which ended while Redis was
// failing: the first one counts, which is the one nearer to the reason.
var failures = []struct {
	err     error
	outcome outcome
}{
	{holdfast.ErrInvalid, outcome{semconv.ErrorTypeKey, "invalid"}},
	{holdfast.ErrUpgrade, outcome{semconv.ErrorTypeKey, "upgrade"}},
	{holdfast.ErrLost, outcome{semconv.ErrorTypeKey, "lost"}},
	{holdfast.ErrReleased, outcome{semconv.ErrorTypeKey, "released"}},
	{holdfast.ErrClosed, outcome{semconv.ErrorTypeKey, "closed"}},
	{holdfast.ErrUnavailable, outcome{semconv.ErrorTypeKey, "unavailable"}},
	{holdfast.ErrNotAcquired, outcome{semconv.ErrorTypeKey, notAcquired}},
	{context.DeadlineExceeded, outcome{semconv.ErrorTypeKey, "timeout"}},
	{context.Canceled, outcome{semconv.ErrorTypeKey, cancelled}},
}

var otherFailure = outcome{semconv.ErrorTypeKey, semconv.ErrorTypeOther.Value.AsString()}

// failure sorts an error; nil gives none.
func failure(err error) outcome {
	if err == nil {
		return none
	}
	for _, f := range failures {
		if errors.Is(err, f.err) {
			return f.outcome
		}
	}
	return otherFailure
}

// losses sort the reasons of an ErrLost by how they begin, because only their words tell them apart.
var losses = []struct {
	begins  string
	outcome outcome
}{
	{"freed by force", outcome{causeKey, "forced"}},
	{"its lease ran out", outcome{causeKey, "expired"}},
	{"its fixed lease", outcome{causeKey, "expired"}},
	{"no renewal went through", outcome{causeKey, "unrenewed"}},
	{"MaxHold", outcome{causeKey, "max_hold"}},
	{"the server no longer", outcome{causeKey, "forgotten"}},
	{"the server gave", outcome{causeKey, "superseded"}},
	{"the server knows another", outcome{causeKey, "superseded"}},
}

var otherLoss = outcome{causeKey, "other"}

// loss sorts the cause of a loss.
func loss(cause error) outcome {
	why := reason(cause)
	for _, l := range losses {
		if strings.HasPrefix(why, l.begins) {
			return l.outcome
		}
	}
	return otherLoss
}

// reason is what a loss says after "hold lost: ". The name, which wraps that, may contain any words.
func reason(err error) string {
	for err != nil {
		inner := errors.Unwrap(err)
		if inner == holdfast.ErrLost { //nolint:errorlint // it looks for the one that wraps ErrLost itself
			break
		}
		err = inner
	}
	if err == nil {
		return ""
	}
	return strings.TrimPrefix(err.Error(), holdfast.ErrLost.Error()+": ")
}

// outcomes are all of them.
func outcomes() []outcome {
	all := []outcome{none, otherFailure, otherLoss}
	for _, o := range hows {
		all = append(all, o)
	}
	for _, f := range failures {
		all = append(all, f.outcome)
	}
	for _, l := range losses {
		all = append(all, l.outcome)
	}
	return all
}
