package integration

import (
	"cmp"
	"fmt"
	"slices"
)

// byGrant lists the acquisitions that succeeded in the order of their tokens, which is that of the server's grants.
func byGrant(events []event) []event {
	var granted []event
	for _, e := range events {
		if e.Outcome == got {
			granted = append(granted, e)
		}
	}
	slices.SortStableFunc(granted, func(a, b event) int { return cmp.Compare(a.Token, b.Token) })
	return granted
}

// checkExclusion is exact for the history of a mutex: as tokens tell the order, each hold can be given its earliest times,
// and must have begun before its acquire returned. O(n log n).
func checkExclusion(events []event) error {
	granted := byGrant(events)
	free := int64(0) // the earliest time at which the lock can be free, given all before
	for i, e := range granted {
		if i > 0 {
			before := granted[i-1]
			if e.Token == before.Token {
				return fmt.Errorf("one token twice: %+v and %+v", before, e)
			}
			if e.Returned < before.believed() {
				return fmt.Errorf("two believed to hold at once: %+v and %+v", before, e)
			}
		}
		began := max(e.Called, free)
		if began > e.Returned {
			return fmt.Errorf("granted %d ns before the hold before can have ended: %+v and %+v", began-e.Returned, granted[i-1], e)
		}
		free = max(began, ends(e))
	}
	return nil
}

// ends is the earliest time at which the server can have ended a hold.
func ends(e event) int64 {
	if e.Released > 0 {
		return min(e.Released, e.ServerKeeps)
	}
	return e.ServerKeeps
}

// checkPermits sweeps over the times at which holders believed in their holds: the sum of their weights never exceeds
// the capacity. O(n log n).
func checkPermits(events []event, capacity int64) error {
	type edge struct{ at, weight int64 }
	var edges []edge
	for _, e := range byGrant(events) {
		if e.believed() > e.Returned {
			edges = append(edges, edge{e.Returned, e.Weight}, edge{e.believed(), -e.Weight})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.weight, b.weight)) // who leaves first
	})
	used := int64(0)
	for _, e := range edges {
		if used += e.weight; used > capacity {
			return fmt.Errorf("%d believed in at %d, there are %d", used, e.at, capacity)
		}
	}
	return nil
}

// checkServer is checkExclusion for any capacity, less strict: when an acquire has returned, the holds that were granted
// before it, as their tokens say, and that the server cannot have ended by then leave room for it.
func checkServer(events []event, capacity int64) error {
	granted := byGrant(events)
	soonest := make([]int64, len(granted)) // that one of these or a later one returned
	for i, e := range slices.Backward(granted) {
		soonest[i] = e.Returned
		if i+1 < len(granted) {
			soonest[i] = min(soonest[i], soonest[i+1])
		}
	}
	var open []event // those before that may count for somebody yet
	for i, e := range granted {
		open = slices.DeleteFunc(open, func(before event) bool { return ends(before) <= soonest[i] })
		used := e.Weight
		for _, before := range open {
			if ends(before) > e.Returned {
				used += before.Weight
			}
		}
		if used > capacity {
			return fmt.Errorf("%d in use at the server when it was granted, there are %d: %+v", used, capacity, e)
		}
		open = append(open, e)
	}
	return nil
}

// checkTokens: no token is given twice, and who certainly came later has the greater one. O(n log n).
func checkTokens(events []event) error {
	granted := byGrant(events)
	first := event{Returned: 1 << 62} // the first to return among those with greater tokens
	for i, e := range slices.Backward(granted) {
		if i > 0 && e.Token == granted[i-1].Token {
			return fmt.Errorf("one token twice: %+v and %+v", granted[i-1], e)
		}
		if first.Returned < e.Called {
			return fmt.Errorf("the tokens are not in the order of the holds: %+v and %+v", first, e)
		}
		if e.Returned < first.Returned {
			first = e
		}
	}
	return nil
}
