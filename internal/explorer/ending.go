package explorer

// How an owner ends, and what becomes of the one that its release names.

// namedBy is the agent that a release names, if it is still that owner.
func (w *world) namedBy(s *state, c call) *agentState {
	if c.next == 0 || s.agents[c.next-1].tenure != c.nextTenure {
		return nil
	}
	return &s.agents[c.next-1]
}

// mayStillCome tells whether some request that can create a hold or a ticket of agent i's owner is
// unanswered, one under way included. Then the owner's end needs a tombstone.
func (w *world) mayStillCome(s *state, i int) bool {
	a, bugs := &s.agents[i], w.scope.Bugs
	if a.unanswered {
		return true
	}
	if (a.call.kind == acquire || a.call.kind == reenter) && !bugs.NoTombInFlight {
		return true
	}
	for _, f := range s.beside {
		if int(f.call.agent) == i && f.call.tenure == a.tenure && !bugs.NoTombInFlight {
			return true
		}
	}
	for j := range s.agents {
		if c := s.agents[j].call; c.kind == release && w.namedBy(s, c) == a && !bugs.NoTombNamed {
			return true
		}
	}
	return false
}

// undo ends the owner of agent i, whatever it has: after a cancel, a loss or an ambiguous attempt.
func (w *world) undo(s *state, i int) {
	w.end(s, i, undoing)
}

// end releases the owner of agent i, with a tombstone if something of it may still come.
func (w *world) end(s *state, i int, p phase) {
	a := &s.agents[i]
	a.tomb = w.mayStillCome(s, i)
	s.abandonCall(i)
	a.phase, a.next, a.retried = p, 0, false
	if p == leaving {
		w.name(s, i)
	}
	w.send(s, i, release)
}

// name makes the client's next idle agent the one that agent i's release queues.
func (w *world) name(s *state, i int) {
	if !w.scope.Agents[i].Names {
		return
	}
	for j := range s.agents {
		n := &s.agents[j]
		if j != i && n.phase == idle && n.rounds > 0 && w.scope.Agents[j].Client == w.scope.Agents[i].Client {
			n.rounds--
			n.tenure++
			n.phase = named
			s.agents[i].next, s.agents[i].nextTenure = int8(j)+1, n.tenure
			return
		}
	}
}

// releaseAgain repeats an unanswered release. Only the first attempt names the next owner, unless the scope
// wants it named every time, which must not do any harm either.
func (w *world) releaseAgain(s *state, i int) {
	a := &s.agents[i]
	switch {
	case a.next == 0:
	case w.scope.Bugs.RequeueAlways:
		if n := &s.agents[a.next-1]; n.phase == named && n.tenure == a.nextTenure {
			n.tenure++
			a.nextTenure++
		}
	case !w.scope.NamesAgain:
		a.next, a.nextTenure = 0, 0
	}
	w.send(s, i, release)
}

// done makes agent i ready for its next round.
func (s *state) done(i int) {
	a := &s.agents[i]
	*a = agentState{phase: finished, tenure: a.tenure, rounds: a.rounds}
	if a.rounds > 0 {
		a.phase = idle
	}
}

// receiveRelease ends the owner that agent i released, and settles what becomes of the one it named.
func (w *world) receiveRelease(s *state, i int, c call, r answer, sentAt int16) {
	a := &s.agents[i]
	if r.failed {
		return // the verifier has complained
	}
	if a.phase == leaving && r.status == 0 && !a.retried && s.now < a.deadline && !a.exempt {
		s.broken = "a holder's release was told that it does not hold: " + w.owner(int8(i), a.tenure)
		return
	}
	w.settleNext(s, i, c, r, sentAt)
	if r.more { // grants were left for another run
		a.retried = true
		w.send(s, i, release)
		return
	}
	s.done(i)
}

// settleNext: the named owner is queued if this very run ended the hold and queued it; else it has to ask.
func (w *world) settleNext(s *state, i int, c call, r answer, sentAt int16) {
	n := w.namedBy(s, c)
	if n == nil {
		return
	}
	queued := r.status == 1 && r.ticket > 0
	if queued {
		s.addBase(base{w.scope.Agents[i].Client, sentAt, r.seq})
	}
	if n.phase != named {
		return
	}
	j := int(c.next - 1)
	if !queued {
		w.acquireNamed(s, j)
		return
	}
	n.phase, n.ticket, n.polled = waiting, r.ticket, s.now
	if p := n.kept; p.token != 0 {
		n.kept = push{}
		w.believe(s, j, p)
	}
}

// acquireNamed lets an owner that was named ask for itself.
func (w *world) acquireNamed(s *state, j int) {
	s.agents[j].phase = trying
	w.send(s, j, acquire)
}
