package explorer

import "fmt"

// check looks at what the clients believe, and at what the server keeps for owners that are over.
func (w *world) check(s *state) {
	if s.broken != "" {
		return
	}
	believed, capacity := int64(0), int64(0)
	for i := range s.agents {
		a := &s.agents[i]
		if a.phase == holding && (s.now < a.deadline || a.blind) && !a.exempt {
			believed += a.weight * (1 + int64(a.beside))
		}
		capacity = max(capacity, w.scope.Agents[i].Capacity)
	}
	if believed > capacity {
		s.broken = fmt.Sprintf("holders believe in %d of %d", believed, capacity)
		return
	}
	r := w.record(s)
	for i := range s.agents {
		w.checkBelief(s, i, r)
		w.checkOrphans(s, i, r)
	}
}

// checkBelief: who believes that it holds does, on the server, with that token and for longer.
func (w *world) checkBelief(s *state, i int, r *record) {
	a := &s.agents[i]
	owner := w.owner(int8(i), a.tenure)
	if a.out && r.mentions(owner) {
		s.broken = "forced out, and back: " + owner
	}
	if a.phase != holding || a.exempt {
		return
	}
	if h, ok := r.holders[owner]; !ok || h.token != a.token || h.deadline < millis(a.deadline) || h.weight < a.weight {
		s.broken = "believes that it holds, but does not: " + owner
	}
}

func (w *world) checkOrphans(s *state, i int, r *record) {
	a := &s.agents[i]
	if a.phase == crashed || w.scope.Orphans {
		return
	}
	over := a.tenure
	if a.phase != finished && a.phase != idle {
		over--
	}
	for n := int8(1); n <= over; n++ {
		if owner := w.owner(int8(i), n); r.mentions(owner) {
			s.broken = "something is left of an owner that is over: " + owner
		}
	}
}
