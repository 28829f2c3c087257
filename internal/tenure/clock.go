package tenure

import (
	"sync/atomic"
	"time"
)

// Instant is one moment of a clock that goes on while the machine is suspended, where the system has one (Linux);
// elsewhere it is the monotonic clock of package time. The zero Instant is none.
type Instant struct{ ns int64 }

var (
	ignoreSuspends atomic.Bool
	start          = time.Now()
)

// IgnoreSuspends reads the clock of package time instead: in virtual time (testing/synctest) the other would count real
// time.
func IgnoreSuspends() { ignoreSuspends.Store(true) }

// SeesSuspends reports whether the clock counts the time for which the machine is suspended.
func SeesSuspends() bool { return !ignoreSuspends.Load() && sinceBoot() != 0 }

// Now reads the clock.
func Now() Instant {
	if !ignoreSuspends.Load() {
		if ns := sinceBoot(); ns != 0 {
			return Instant{int64(ns)}
		}
	}
	return Instant{int64(time.Since(start)) + 1<<60} // virtual time begins in 2000: never 0
}

// Add returns i moved by d; beyond what can be counted, the last instant there is.
func (i Instant) Add(d time.Duration) Instant {
	ns := i.ns + int64(d)
	if d > 0 && ns < i.ns {
		ns = 1<<63 - 1
	}
	return Instant{ns}
}

// IsZero reports whether i was never set.
func (i Instant) IsZero() bool { return i.ns == 0 }

// After reports whether i is later than j.
func (i Instant) After(j Instant) bool { return i.ns > j.ns }

// Since returns the time that has passed since i.
func (i Instant) Since() time.Duration { return Now().Sub(i) }

// Until returns how long it is until i; negative when it has passed.
func (i Instant) Until() time.Duration { return i.Sub(Now()) }

// Sub returns how much later i is than j.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i.ns - j.ns) }

// Time returns i as a time of package time.
func (i Instant) Time() time.Time { return time.Now().Add(i.Until()) }

// Earlier returns the earlier of two instants.
func Earlier(i, j Instant) Instant {
	if j.ns < i.ns {
		return j
	}
	return i
}
