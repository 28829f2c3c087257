package explorer

import "fmt"

// A mutex's tenure is passed on inside its client, from one local waiter to the next, without asking the server: each has a
// session with a token of its own. The local waiters are no agents here: the agent that has the tenure goes on
// as the next of them.

// passMoves are the ways to pass on what agent i holds.
func (w *world) passMoves(s *state, i int, do func(string, func(*state))) {
	a, c, bugs := &s.agents[i], &w.scope.Agents[i], w.scope.Bugs
	if s.left[passes] == 0 || a.depth > 1 || c.Capacity > 1 || c.FastClock > 0 {
		return
	}
	if a.handed > a.token && bugs.PassEnded {
		do("'s ended session passes it on", func(n *state) { n.left[passes]--; n.agents[i].beside++ })
	}
	if a.barred && !bugs.PassBarred {
		return
	}
	if token := w.bound(s, i); token > a.handed || bugs.PassSame {
		do("is passed on", func(n *state) {
			n.left[passes]--
			n.agents[i].handed = token
			w.handOut(n, i)
		})
	}
}

// bound is the highest token that a session may have now, as the last of many has it: the tenure's, and most of the time that
// the client's clock counted since it learnt of that. The server's clock has then passed it.
func (w *world) bound(s *state, i int) int64 {
	a, bugs := &s.agents[i], w.scope.Bugs
	passed := int64(s.now-a.since) * tick * 1000
	if rate := w.scope.Agents[i].Rate; rate > 0 {
		passed = passed * rate / 100
	}
	switch {
	case bugs.PassSame:
		return a.handed
	case bugs.PassAhead:
		return a.token + 2*passed
	case bugs.PassNoSlack:
		return a.token + passed - 1
	}
	return a.token + passed - passed/8
}

// passesLate is a mistake: the tenure is passed on though its deadline has come.
func (w *world) passesLate(s *state, i int) bool {
	if !w.scope.Bugs.PassLate || s.left[passes] == 0 {
		return false
	}
	s.left[passes]--
	s.agents[i].blind = true
	return true
}

// sound tells whether the clock of agent i is none that tokens can run ahead of.
func (w *world) sound(i int) bool {
	return w.scope.Agents[i].FastClock == 0 && w.scope.Agents[i].Rate <= 114 // eight sevenths
}

// handOut checks the token that agent i's user is given: it is above everybody's before. Whoever does not know yet that the
// server was made to forget it is behind the times.
func (w *world) handOut(s *state, i int) {
	a := &s.agents[i]
	if !w.sound(i) {
		return
	}
	s.out = max(s.out, a.handed)
	if a.exempt {
		return
	}
	if a.handed <= s.order && w.exclusive {
		s.broken = fmt.Sprintf("token %d was handed out after %d", a.handed, s.order)
	}
	s.order = max(s.order, a.handed)
}
