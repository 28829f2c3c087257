package watchdog

import "github.com/holdfast-go/holdfast/internal/tenure"

// queue is the watches in the order of their instants: a heap in which each place has four below it, so that few of them are
// touched. Nothing else is as costly about a hundred thousand holds.
type queue []place

// place has its watch's instant beside it: with many holds the watches themselves are in no cache.
type place struct {
	at    tenure.Instant
	watch *Watch
}

// put moves v, which may be new, to where an instant belongs.
func (q *queue) put(v *Watch, at tenure.Instant) {
	if v.index == outside {
		*q = append(*q, place{})
		v.index = int32(len(*q))
		q.up(len(*q)-1, place{at, v})
		return
	}
	i := int(v.index) - 1
	if (*q)[i].at.After(at) {
		q.up(i, place{at, v})
	} else {
		q.down(i, place{at, v})
	}
}

// remove takes v out, if it is in.
func (q *queue) remove(v *Watch) {
	if v.index <= outside {
		return
	}
	i, end := int(v.index)-1, len(*q)-1
	last := (*q)[end]
	(*q)[end] = place{}
	*q = (*q)[:end]
	v.index = outside
	switch {
	case i == end:
	case i > 0 && (*q)[(i-1)/4].at.After(last.at):
		q.up(i, last)
	default:
		q.down(i, last)
	}
}

func (q queue) set(i int, p place) {
	q[i] = p
	p.watch.index = int32(i + 1)
}

// up puts p at i or above, where i may be overwritten.
func (q queue) up(i int, p place) {
	for i > 0 {
		above := (i - 1) / 4
		if !q[above].at.After(p.at) {
			break
		}
		q.set(i, q[above])
		i = above
	}
	q.set(i, p)
}

// down puts p at i or below, where i may be overwritten.
func (q queue) down(i int, p place) {
	for {
		first := 4*i + 1
		if first >= len(q) {
			break
		}
		least := first
		for j := first + 1; j < min(first+4, len(q)); j++ {
			if q[least].at.After(q[j].at) {
				least = j
			}
		}
		if !p.at.After(q[least].at) {
			break
		}
		q.set(i, q[least])
		i = least
	}
	q.set(i, p)
}
