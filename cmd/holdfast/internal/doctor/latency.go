package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	pings = 30
	// failover is what an election takes besides noticing that the master is dead.
	failover = 2 * time.Second
	// An attempt to renew may take a tenth of the lease, and there should be room for several.
	tripsPerLease = 100
	// leastLease is what pauses of the client (garbage, the scheduler, a VM that moves) ask for on any network.
	leastLease = time.Second
)

func millisOf(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// checkLatency measures round trips and says what leases they allow. A hold outlives an outage if that is shorter than
// what is left of the lease when it begins: two thirds of it less the margin, about a half.
func (e *exam) checkLatency(ctx context.Context) {
	var trips []time.Duration
	for _, n := range e.masters {
		for range pings {
			sent := time.Now()
			if err := n.rdb.Echo(ctx, "").Err(); err != nil && !refused(err) {
				e.add("latency", Fail, fmt.Sprintf("a call failed: %v", err), "")
				return
			}
			trips = append(trips, time.Since(sent))
		}
	}
	slices.Sort(trips)
	median, worst := trips[len(trips)/2], trips[len(trips)-1]
	least := max(leastLease, (tripsPerLease * worst).Round(time.Second))
	text := fmt.Sprintf("round trip %v, at worst %v of %d", round(median), round(worst), len(trips))
	if e.outage > 0 {
		text += fmt.Sprintf("; a failover takes about %v", e.outage)
		least = max(least, (2 * e.outage).Round(time.Second))
	}
	text += fmt.Sprintf(": leases of %v and more are safe", least)
	if e.Lease < least {
		e.add("latency", Warn, text+fmt.Sprintf(", %v is too short", e.Lease), "use a longer lease, or a Redis that is nearer")
		return
	}
	e.add("latency", OK, text+fmt.Sprintf("; yours is %v", e.Lease), "")
}

func round(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d.Round(time.Microsecond)
	}
	return d.Round(100 * time.Microsecond)
}
