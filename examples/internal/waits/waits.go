// Package waits sums up how long callers waited for a lock.
package waits

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Waits are measured waits, in any order.
type Waits []time.Duration

// Quantile returns the wait that the share q, above 0 and at most 1, of all did not exceed; 0 without any.
func (w Waits) Quantile(q float64) time.Duration {
	if len(w) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(w))
	return sorted[int(math.Ceil(q*float64(len(sorted))))-1]
}

// String gives the median, the 99th percentile and the longest, in milliseconds.
func (w Waits) String() string {
	return fmt.Sprintf("median %s, p99 %s, longest %s", millis(w.Quantile(0.5)), millis(w.Quantile(0.99)), millis(w.Quantile(1)))
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }
