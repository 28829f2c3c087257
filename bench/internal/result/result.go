// Package result keeps what was measured and sums it up.
package result

import (
	"cmp"
	"slices"
)

// Sample is what one slice of one contender gave.
type Sample struct {
	Case      string             `json:"case"` // begins with the letter of its mode
	Contender string             `json:"contender"`
	Round     int                `json:"round"`
	Metrics   map[string]float64 `json:"metrics,omitempty"` // none if it failed
	Note      string             `json:"note,omitempty"`    // what went wrong
}

// Set is all that was measured.
type Set []Sample

// Spread sums up the rounds.
type Spread struct {
	Median, Min, Max float64
	Rounds           int
}

// Of returns the spread of a metric over the rounds that did not fail.
func (s Set) Of(scenario, contender, metric string) (Spread, bool) {
	var values []float64
	for _, sample := range s {
		if sample.Case != scenario || sample.Contender != contender {
			continue
		}
		if v, ok := sample.Metrics[metric]; ok {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return Spread{}, false
	}
	slices.Sort(values)
	return Spread{Median: Median(values), Min: values[0], Max: values[len(values)-1], Rounds: len(values)}, true
}

// Median returns the middle of sorted values, or the mean of the two in the middle.
func Median(sorted []float64) float64 {
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Cases returns the cases in the order in which they were first measured.
func (s Set) Cases() []string { return distinct(s, func(x Sample) string { return x.Case }) }

// Contenders returns who took part in a case, in the given order, the others behind.
func (s Set) Contenders(scenario string, order []string) []string {
	var in Set
	for _, sample := range s {
		if sample.Case == scenario {
			in = append(in, sample)
		}
	}
	found := distinct(in, func(x Sample) string { return x.Contender })
	rank := func(name string) int {
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(found, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return found
}

// Notes returns the samples about which there is something to say.
func (s Set) Notes() Set {
	var noted Set
	for _, sample := range s {
		if sample.Note != "" {
			noted = append(noted, sample)
		}
	}
	return noted
}

func distinct(s Set, name func(Sample) string) []string {
	var names []string
	for _, sample := range s {
		if n := name(sample); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}
