package scripts

import (
	"sync/atomic"
	"time"
)

// trip is an estimate of the round trip to the server, near its minimum: what a busy process measures is mostly its own
// scheduling, and who took that for the round trip would make itself busier still.
type trip struct{ ns atomic.Int64 }

// firstTrip is the most that the first call counts for: it had to connect.
const firstTrip = 500 * time.Microsecond

// took falls fast and rises slowly.
func (t *trip) took(d time.Duration) {
	old, now := t.ns.Load(), int64(d)
	switch {
	case old == 0:
		now = min(now, int64(firstTrip))
	case now < old:
		now = old - (old-now)/4
	default:
		now = old + min(now-old, old)/256
	}
	t.ns.Store(now) // one of several at once may be forgotten
}

// RoundTrip estimates how long a call takes at least; 0 before the first.
func (c *Caller) RoundTrip() time.Duration { return time.Duration(c.trip.ns.Load()) }
