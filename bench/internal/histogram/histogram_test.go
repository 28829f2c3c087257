package histogram_test

import (
	"math"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/histogram"
)

func TestQuantilesAreWithinThreePercent(t *testing.T) {
	var h histogram.Histogram
	const n = 200_000
	for i := range n {
		h.Add(time.Duration(i+1) * time.Microsecond)
	}
	s := h.Snapshot()
	if s.Count() != n {
		t.Fatalf("%d counted", s.Count())
	}
	for _, q := range []float64{0.001, 0.5, 0.99, 0.9999} {
		want := q * n * float64(time.Microsecond)
		if got := float64(s.Quantile(q)); math.Abs(got/want-1) > 0.035 {
			t.Errorf("quantile %v: %v instead of %v", q, time.Duration(got), time.Duration(want))
		}
	}
	if s.Quantile(1) != n*time.Microsecond {
		t.Errorf("the biggest is %v", s.Quantile(1))
	}
}

func TestAnyDurationHasABucket(t *testing.T) {
	var h histogram.Histogram
	for _, d := range []time.Duration{-1, 0, 31, 32, 33, math.MaxInt64} {
		h.Add(d)
	}
	var merged histogram.Snapshot
	merged.Merge(h.Snapshot())
	if merged.Count() != 6 || merged.Max != math.MaxInt64 {
		t.Fatalf("%+v", merged)
	}
	h.Reset()
	empty := h.Snapshot()
	if empty.Count() != 0 || empty.Quantile(0.5) != 0 {
		t.Fatal("not empty after Reset")
	}
}
