package doctor

import (
	"context"
	"fmt"
	"time"
)

// Differences between the clocks of servers. A failover is a step of the clock for locks: one forward beyond the margin
// of a lease (a tenth of it) frees a lock before its holder stops believing, one back makes dead holders' leases longer.
const (
	smallStep = 100 * time.Millisecond
	ourStep   = time.Second
)

// offset is how far a node's clock is ahead of ours, and how wrong that may be.
func (n *node) offset(ctx context.Context) (ahead, error time.Duration, err error) {
	best := time.Hour
	for range 3 { // the quickest answer tells most
		sent := time.Now()
		theirs, err := n.rdb.Time(ctx).Result()
		if err != nil {
			return 0, 0, err
		}
		if took := time.Since(sent); took < best {
			best, ahead = took, theirs.Sub(sent.Add(took/2))
		}
	}
	return ahead, best / 2, nil
}

// checkClocks compares the clocks of all servers that may ever be the master of a name.
func (e *exam) checkClocks(ctx context.Context) {
	var low, high, doubt time.Duration
	seen := 0
	for _, n := range append(e.masters[:len(e.masters):len(e.masters)], e.replicas...) {
		ahead, unsure, err := n.offset(ctx)
		if err != nil {
			if n.closes {
				e.add("clocks", Note, fmt.Sprintf("replica %s could not be asked from here: %v", n.addr, err), "")
			}
			continue // a master that denies TIME was found out with the rights
		}
		if seen == 0 {
			low, high = ahead, ahead
		}
		low, high, doubt = min(low, ahead), max(high, ahead), max(doubt, unsure)
		seen++
	}
	if seen == 0 {
		return
	}
	if off := max(high, -low); off > ourStep {
		e.add("clocks", Note, fmt.Sprintf("this machine's clock differs by %v: locks do not depend on it", off.Round(time.Millisecond)), "")
	}
	spread := high - low
	switch text := fmt.Sprintf("the clocks of %d servers differ by %v", seen, spread.Round(time.Millisecond)); {
	case seen == 1:
	case spread-2*doubt > e.Lease/10:
		e.add("clocks", Fail, text+": a failover could grant locks that are held", "run NTP on all of them; or use longer leases")
	case spread-2*doubt > smallStep:
		e.add("clocks", Warn, text, "run NTP on all of them")
	default:
		e.add("clocks", OK, text, "")
	}
}
