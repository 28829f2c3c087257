// Package histogram counts durations in buckets of a bounded relative width, cheaply enough for a loop that runs
// half a million times a second.
package histogram

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Each power of two is split into 32 buckets, so a percentile is off by 3 % at most.
const (
	fineBits = 5
	fine     = 1 << fineBits
	buckets  = (64 - fineBits + 1) * fine
)

// Histogram is safe for concurrent use. The zero value is empty.
type Histogram struct {
	counts [buckets]atomic.Int64
	max    atomic.Int64
}

// Add counts d; a negative d counts as 0.
func (h *Histogram) Add(d time.Duration) {
	n := max(int64(d), 0)
	h.counts[bucket(n)].Add(1)
	for {
		old := h.max.Load()
		if n <= old || h.max.CompareAndSwap(old, n) {
			return
		}
	}
}

// Reset forgets everything. What is added meanwhile may be forgotten or not.
func (h *Histogram) Reset() {
	for i := range h.counts {
		h.counts[i].Store(0)
	}
	h.max.Store(0)
}

// Snapshot returns what was counted so far.
func (h *Histogram) Snapshot() Snapshot {
	s := Snapshot{Counts: make(map[int]int64), Max: time.Duration(h.max.Load())}
	for i := range h.counts {
		if n := h.counts[i].Load(); n > 0 {
			s.Counts[i] = n
		}
	}
	return s
}

// bucket returns the index for n: below 32 n itself, above it the exponent and the next five bits.
func bucket(n int64) int {
	if n < fine {
		return int(n)
	}
	shift := bits.Len64(uint64(n)) - 1 - fineBits
	return (shift+1)*fine + int(n>>shift) - fine
}

// ceiling returns the biggest value in bucket i.
func ceiling(i int) time.Duration {
	if i < fine {
		return time.Duration(i)
	}
	shift := i/fine - 1
	return time.Duration((int64(i%fine+fine+1) << shift) - 1)
}

// Snapshot is what a Histogram had counted, for sending and merging.
type Snapshot struct {
	Counts map[int]int64 `json:"counts"`
	Max    time.Duration `json:"max"`
}

// Merge adds what other counted.
func (s *Snapshot) Merge(other Snapshot) {
	if s.Counts == nil {
		s.Counts = make(map[int]int64)
	}
	for i, n := range other.Counts {
		s.Counts[i] += n
	}
	s.Max = max(s.Max, other.Max)
}

// Count returns how many durations were counted.
func (s *Snapshot) Count() int64 {
	var n int64
	for _, c := range s.Counts {
		n += c
	}
	return n
}

// Quantile returns the duration below which the fraction q of all are, 0 if there are none.
func (s *Snapshot) Quantile(q float64) time.Duration {
	total := s.Count()
	if total == 0 {
		return 0
	}
	rank := int64(q * float64(total))
	for i := range buckets {
		if rank -= s.Counts[i]; rank < 0 {
			return min(ceiling(i), s.Max)
		}
	}
	return s.Max
}
