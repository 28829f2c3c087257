package explorer

// closes plays s to its end without further faults: what is under way in messages is lost, holders
// release, waiters poll by the rules, nobody new comes. Everybody must be served in bounded time, and the
// key must vanish. It returns what goes wrong, or "".
func (w *world) closes(s *state) string {
	s = w.lastAct(s)
	bound := w.patience()
	var visited []fingerprint
	for ticks := int16(0); !s.atRest(); ticks++ {
		id := w.identify(s)
		if w.closed[id] { // the rest of the play is known to end well
			break
		}
		visited = append(visited, id)
		if ticks > bound {
			return "in the end a waiter is not served"
		}
		for range 2 {
			w.playRound(s)
		}
		if s.broken != "" {
			return "in the end: " + s.broken
		}
		if !s.atRest() {
			w.pass(s)
		}
	}
	if broken := w.vanishes(s, bound); broken != "" {
		return broken
	}
	for _, id := range visited {
		w.closed[id] = true
	}
	return ""
}

// lastAct is s without messages, faults and newcomers.
func (w *world) lastAct(s *state) *state {
	s = s.clone()
	s.late, s.beside, s.pushes, s.full, s.left = nil, nil, nil, false, [budgets]int8{}
	for i := range s.agents {
		a := &s.agents[i]
		a.rounds = 0
		if a.phase == idle {
			a.phase = finished
		}
	}
	return s
}

// patience bounds the ticks until everybody is served: dead holders and claims run out, dead waiters
// too, and each live waiter may need a poll or two.
func (w *world) patience() int16 {
	longest := int16(0)
	for _, a := range w.scope.Agents {
		longest = max(longest, a.Lease+a.Claim+a.Window)
	}
	return longest + 5*int16(len(w.scope.Agents)) + 6
}

func (s *state) atRest() bool {
	for i := range s.agents {
		if p := s.agents[i].phase; p != finished && p != crashed {
			return false
		}
	}
	return true
}

// playRound lets every agent do its next thing.
func (w *world) playRound(s *state) {
	for i := range s.agents {
		w.answerNow(s)
		switch a := &s.agents[i]; a.phase {
		case holding:
			w.end(s, i, undoing)
		case leaving, undoing:
			if a.call.kind == nothing {
				w.releaseAgain(s, i)
			}
		case named:
			if !s.namedNow(i) {
				w.acquireNamed(s, i)
			}
		case trying, waiting:
			if w.mayPoll(s, i) {
				w.send(s, i, acquire)
			}
		}
		w.answerNow(s)
		s.pushes = nil
	}
}

// namedNow tells whether a release that names agent i is under way, or about to be repeated.
func (s *state) namedNow(i int) bool {
	for j := range s.agents {
		if a := &s.agents[j]; a.phase == leaving && int(a.next) == i+1 && a.nextTenure == s.agents[i].tenure {
			return true
		}
	}
	return false
}

// answerNow serves every call, those that follow from answers too.
func (w *world) answerNow(s *state) {
	for i := 0; i < len(s.agents); i++ {
		a := &s.agents[i]
		if a.call.kind == nothing || s.broken != "" {
			continue
		}
		if a.progress != ran {
			w.serve(s, i)
		}
		w.receive(s, i)
		i = -1
	}
}

// vanishes: once everybody has gone, nothing is left of the name but tombstones, and those end.
func (w *world) vanishes(s *state, bound int16) string {
	if !s.atRest() {
		return "" // the play joined an earlier one
	}
	r := w.record(s)
	if !s.anyCrashed() && len(r.holders)+len(r.tickets) > 0 {
		return "in the end somebody is left in the hash"
	}
	if len(r.tombstones) > 0 || !r.exists {
		return ""
	}
	for range bound {
		w.pass(s)
	}
	if s.key != 0 {
		return "in the end the key stays"
	}
	return ""
}

func (s *state) anyCrashed() bool {
	for i := range s.agents {
		if s.agents[i].phase == crashed {
			return true
		}
	}
	return false
}
