package tenure

import (
	"sync/atomic"
	"time"
)

// Instant is one moment read from two clocks: the monotonic clock of package time, which stands still
// while the machine is suspended, and a clock that does not. A deadline has passed when either says so.
type Instant struct {
	mono time.Time
	boot time.Duration // zero where the system has no such clock
}

var ignoreSuspends atomic.Bool

// IgnoreSuspends stops reading the second clock: in virtual time (testing/synctest) it would count real time.
func IgnoreSuspends() { ignoreSuspends.Store(true) }

// SeesSuspends reports whether there is a second clock.
func SeesSuspends() bool { return Now().boot != 0 }

// Now reads both clocks.
func Now() Instant {
	i := Instant{mono: time.Now()}
	if !ignoreSuspends.Load() {
		i.boot = sinceBoot()
	}
	return i
}

// Add returns i moved by d.
func (i Instant) Add(d time.Duration) Instant {
	i.mono = i.mono.Add(d)
	if i.boot != 0 {
		if i.boot += d; d > 0 && i.boot < 0 { // beyond what a Duration can count: never
			i.boot = 0
		}
	}
	return i
}

// IsZero reports whether i was never set.
func (i Instant) IsZero() bool { return i.mono.IsZero() }

// After reports whether i is later than j.
func (i Instant) After(j Instant) bool { return i.mono.After(j.mono) }

// Since returns the time that has passed since i, by the clock that saw more of it.
func (i Instant) Since() time.Duration { return -i.Until() }

// Until returns how long it is until i, by the clock that sees it coming sooner; negative when it has passed.
func (i Instant) Until() time.Duration { return i.Sub(Now()) }

// Sub returns how much later i is than j, by the clock that sees less between them.
func (i Instant) Sub(j Instant) time.Duration {
	d := i.mono.Sub(j.mono)
	if i.boot != 0 && j.boot != 0 {
		d = min(d, i.boot-j.boot)
	}
	return d
}

// Time returns i as a time of package time.
func (i Instant) Time() time.Time { return i.mono }

// Earlier returns the earlier of two instants, by each clock.
func Earlier(i, j Instant) Instant {
	if j.mono.Before(i.mono) {
		i.mono = j.mono
	}
	if i.boot == 0 || j.boot != 0 && j.boot < i.boot {
		i.boot = j.boot
	}
	return i
}
