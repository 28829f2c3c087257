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
	ahead          atomic.Int64 // ns that Now is at least ahead of the time since start
)

// IgnoreSuspends reads the clock of package time instead: in virtual time (testing/synctest) the other would count real
// time.
func IgnoreSuspends() { ignoreSuspends.Store(true) }

// SeesSuspends reports whether the clock counts the time for which the machine is suspended.
func SeesSuspends() bool { return !ignoreSuspends.Load() && sinceBoot() != 0 }

// Now reads the clock.
func Now() Instant {
	if !ignoreSuspends.Load() {
		if boot := sinceBoot(); boot != 0 {
			// Read after boot, so it can only be too little, and the most is the best.
			for d, most := int64(boot-time.Since(start)), ahead.Load(); d > most && !ahead.CompareAndSwap(most, d); {
				most = ahead.Load()
			}
			return Instant{int64(boot)}
		}
	}
	return Instant{int64(time.Since(start)) + 1<<60} // virtual time begins in 2000: never 0
}

// Lately returns an instant that is not later than Now, and never goes back. It needs no system call, but does not know of a
// suspend before the next Now. Deadlines that count from it come too early then, not too late.
func Lately() Instant {
	most := ahead.Load()
	if most == 0 || ignoreSuspends.Load() {
		return Now()
	}
	return Instant{int64(time.Since(start)) + most}
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
