package explorer

import (
	"fmt"
	"slices"
)

// A mutex's tenure is passed on inside its client, from one local waiter to the next, without asking the server: each has a
// session with a token of its own. The local waiters are no agents here: the agent that has the tenure goes on
// as the next of them.
//
// A token is base*numbers + number, as in package tenure but with few numbers, so that they are used up.
const numbers = 4

func firstToken(base int64) int64 { return base * numbers }
func baseOf(token int64) int64    { return token / numbers }
func used(token int64) bool       { return token%numbers == numbers-1 }

// passMoves are the ways to pass on what agent i holds.
func (w *world) passMoves(s *state, i int, do func(string, func(*state))) {
	a, c, bugs := &s.agents[i], &w.scope.Agents[i], w.scope.Bugs
	if s.left[passes] == 0 || a.depth > 1 || c.Capacity > 1 {
		return
	}
	if a.handed > firstToken(a.token) && bugs.PassEnded {
		do("'s ended session passes it on", func(n *state) { n.left[passes]--; n.agents[i].beside++ })
	}
	token, ok := w.nextToken(s, i)
	if !ok {
		return
	}
	pass := func(token int64) func(*state) {
		return func(n *state) {
			n.left[passes]--
			w.passOn(n, i, token)
		}
	}
	do("is passed on", pass(token))
	if last := firstToken(baseOf(token)) + numbers - 1; last > token && !bugs.PassSame {
		do("is passed on until no number is left", pass(last))
	}
}

// nextToken is the token of the next session. Without a proof its base is that of the one before.
func (w *world) nextToken(s *state, i int) (token int64, ok bool) {
	a, bugs := &s.agents[i], w.scope.Bugs
	switch {
	case bugs.PassSame:
		return a.handed, true
	case bugs.PassElapsed:
		us := int64(s.now-a.since) * tick * 1000
		token = firstToken(a.token + us - us/8)
		return token, token > a.handed
	}
	token = max(a.handed, firstToken(a.proven))
	return token + 1, !used(token) || bugs.PassCarry
}

// prove takes in the answer to a renewal: by then nobody else had been granted the name. The next grant may be made while the
// server's clock still reads the same.
func (w *world) prove(s *state, i int, r answer) {
	a, bugs := &s.agents[i], w.scope.Bugs
	if a.phase != holding || w.scope.Pass == 0 {
		return
	}
	proof := r.now*1000 - 1
	switch {
	case bugs.ProofSameTime:
		proof++
	case bugs.ProofReceipt:
		proof = millis(s.now)*1000 - 1
	}
	a.proven = max(a.proven, proof)
}

// provenWrongly is a mistake: a renewal that did not find the tenure is taken for a proof, and the hold goes on.
func (w *world) provenWrongly(s *state, i int, r answer) bool {
	bugs, held := w.scope.Bugs, r.status == statusHeld
	switch {
	case !held && bugs.ProofLost:
		r.now = millis(s.now)
	case held && r.token != s.agents[i].token && bugs.ProofOther:
	default:
		return false
	}
	w.prove(s, i, r)
	return true
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

// passOn begins a session of agent i's tenure.
func (w *world) passOn(s *state, i int, token int64) {
	a := &s.agents[i]
	if token <= a.handed {
		s.broken = fmt.Sprintf("token %d was handed out after %d of the same tenure", token, a.handed)
	}
	a.handed = token
	w.handOut(s, i)
}

// handOut checks the token that agent i's user is given: it is above everybody's of an older grant, as noteTokens sees to, and
// below everybody's of a younger one, whether or not the agent knows of that yet. Only a base that is ahead of the
// server's clock promises nothing before it has been brought back.
func (w *world) handOut(s *state, i int) {
	a := &s.agents[i]
	if w.scope.Agents[i].Ahead > 0 {
		return
	}
	s.out = max(s.out, baseOf(a.handed))
	if !w.exclusive {
		return
	}
	if g := s.grantAfter(a.token); g != 0 && a.handed >= firstToken(g) {
		s.broken = fmt.Sprintf("token %d of tenure %d was handed out after %d was granted", a.handed, a.token, g)
	}
	if a.exempt {
		return
	}
	if a.handed <= s.order {
		s.broken = fmt.Sprintf("token %d was handed out after %d", a.handed, s.order)
	}
	s.order = max(s.order, a.handed)
}

// grantAfter is the first token that the server gave after this one; 0: none.
func (s *state) grantAfter(token int64) int64 {
	for _, g := range s.grants {
		if g > token {
			return g
		}
	}
	return 0
}

// pruneGrants forgets the grants after which nobody can hand out a token of an older one.
func (w *world) pruneGrants(s *state) {
	if len(s.grants) == 0 {
		return
	}
	oldest := s.grants[len(s.grants)-1]
	may := func(token int64) {
		if token != 0 {
			oldest = min(oldest, token)
		}
	}
	for i := range s.agents {
		a := &s.agents[i]
		may(a.answer.token)
		may(a.kept.token)
		if a.phase == holding {
			may(a.token)
		}
	}
	for _, f := range s.beside {
		may(f.answer.token)
	}
	for _, p := range s.pushes {
		may(p.token)
	}
	for _, h := range w.record(s).holders {
		may(h.token)
	}
	s.grants = slices.DeleteFunc(s.grants, func(g int64) bool { return g <= oldest })
}
