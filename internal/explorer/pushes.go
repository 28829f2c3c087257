package explorer

import "slices"

// What clients make of the grants that the server pushes.

// deliver gives a published message to the agent that it is for.
func (w *world) deliver(s *state, p push) {
	a := &s.agents[p.agent]
	if a.tenure != p.tenure {
		return
	}
	i := int(p.agent)
	switch {
	case p.revoked:
		if a.phase == holding {
			w.undo(s, i)
		}
	case a.phase == named, (a.phase == trying || a.phase == waiting) && a.call.kind == acquire:
		a.kept = p // it overtook the answer that this agent awaits
	case a.phase == trying, a.phase == waiting:
		w.believe(s, i, p)
	}
}

// believe takes a pushed grant that some answer of the client dates: the answer was sent before the grant,
// and the claim counted from there ends before the server's.
func (w *world) believe(s *state, i int, p push) {
	sentAt, ok := w.dates(s, w.scope.Agents[i].Client, p.token)
	if !ok {
		return
	}
	claim := int16((p.deadline - p.now) / tick)
	if w.scope.Bugs.OwnClaim {
		claim = w.scope.Agents[i].Lease
	}
	if s.now < sentAt+claim {
		w.hold(s, i, news{p.token, sentAt, claim})
	}
}

// addBase keeps the answers that can date a grant: of two, one that was sent later and yet ran before more
// grants makes the other useless.
func (s *state) addBase(b base) {
	beats := func(x, y base) bool { return x.client == y.client && x.sentAt >= y.sentAt && x.seq <= y.seq }
	for _, old := range s.bases {
		if beats(old, b) {
			return
		}
	}
	s.bases = append(slices.DeleteFunc(s.bases, func(old base) bool { return beats(b, old) }), b)
}

// dates returns when a client sent its latest answer that ran before the grant with that token.
func (w *world) dates(s *state, client int8, token int64) (sentAt int16, ok bool) {
	for _, b := range s.bases {
		if b.client == client && (b.seq < token || w.scope.Bugs.NoTokenCheck) && (!ok || b.sentAt > sentAt) {
			sentAt, ok = b.sentAt, true
		}
	}
	return sentAt, ok
}
