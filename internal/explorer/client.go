package explorer

// The rules that clients follow, one transition each. Margins are zero here: what is checked is that the
// rules hold to the tick.

// send starts a call of agent i.
func (w *world) send(s *state, i int, k kind) {
	a := &s.agents[i]
	c := call{kind: k, agent: int8(i), tenure: a.tenure}
	switch k {
	case acquire:
		a.polled, a.mustAsk = s.now, false
	case release:
		c.tomb, c.next, c.nextTenure, c.token = a.tomb, a.next, a.nextTenure, baseOf(a.handed)
		if w.scope.Bugs.PassSilent {
			c.token = a.token
		}
	case renew:
		c.token, c.depth, c.granted, c.weight = baseOf(a.handed), a.depth, a.token, a.weight
	case downgrade, partial:
		c.weight = a.weight
	}
	a.call, a.progress, a.sentAt, a.answer = c, fresh, s.now, answer{}
}

// begin starts the next acquisition of agent i.
func (w *world) begin(s *state, i int) {
	a := &s.agents[i]
	a.rounds--
	a.tenure++
	a.phase = trying
	w.send(s, i, acquire)
}

// serve lets the server run the call of agent i.
func (w *world) serve(s *state, i int) {
	a := w.execute(s, s.agents[i].call)
	s.agents[i].answer, s.agents[i].progress = a, ran
}

// giveUp ends the wait for an answer to agent i's call; the script has run or may still run.
func (w *world) giveUp(s *state, i int) {
	a := &s.agents[i]
	c := a.call
	a.call = call{}
	switch c.kind {
	case acquire, reenter:
		a.unanswered = a.unanswered || !w.scope.Bugs.NoTombLost
		a.missed = true
		if w.scope.Agents[i].Try && a.phase == trying {
			w.undo(s, i)
		}
	case downgrade:
		a.retried = true
	case release:
		a.retried = true
		if n := w.namedBy(s, c); n != nil {
			n.unanswered = n.unanswered || !w.scope.Bugs.NoTombNamed
		}
	}
}

// abandonCall leaves the call of agent i to its fate.
func (s *state) abandonCall(i int) {
	a := &s.agents[i]
	if a.call.kind != nothing && a.progress == sent {
		s.late = append(s.late, a.call)
	}
	a.call = call{}
}

// receive gives agent i the answer to its call.
func (w *world) receive(s *state, i int) {
	a := &s.agents[i]
	c, r, sentAt := a.call, a.answer, a.sentAt
	a.call, a.answer = call{}, answer{}
	if w.scope.Bugs.ReceiptDeadline {
		sentAt = s.now
	}
	switch c.kind {
	case acquire:
		w.receiveAcquire(s, i, r, sentAt)
	case reenter, renew:
		if a.phase != holding || r.failed || c.kind == renew && w.provenWrongly(s, i, r) {
			return
		}
		w.extend(s, i, r, sentAt)
		if c.kind == renew {
			w.prove(s, i, r)
		}
	case downgrade:
		a.retried = false
	case release:
		w.receiveRelease(s, i, c, r, sentAt)
	}
}

func (w *world) receiveAcquire(s *state, i int, r answer, sentAt int16) {
	a := &s.agents[i]
	asked := w.scope.Agents[i].Client
	if !r.failed && r.status == statusWaiting {
		s.addBase(base{asked, sentAt, r.seq})
	}
	if a.phase == holding { // it was pushed meanwhile: only a held answer says anything
		if r.status == statusHeld && !r.failed {
			w.extend(s, i, r, sentAt)
		}
		return
	}
	if a.phase == waiting && (r.failed || r.status != statusWaiting || r.ticket != a.ticket) || a.missed {
		w.askAll(s, i)
	}
	a.missed = r.failed
	switch {
	case r.failed:
		if w.scope.Agents[i].Try {
			w.endTry(s, i)
		}
	case r.status == statusHeld:
		w.hold(s, i, news{r.token, sentAt, w.scope.Agents[i].Lease})
	case r.status == statusWaiting:
		a.phase, a.ticket = waiting, r.ticket
		if p := a.kept; p.token != 0 {
			a.kept = push{}
			w.believe(s, i, p)
		}
	case r.status == statusBusy && w.scope.Agents[i].Try:
		w.endTry(s, i)
	case r.status == statusRefused && a.exempt:
		w.renameOwner(s, i)
	default:
		s.broken = "an acquisition that goes on was refused: " + w.owner(int8(i), a.tenure)
	}
}

// endTry ends an attempt that does not wait. Nothing is left behind unless some attempt is unanswered.
func (w *world) endTry(s *state, i int) {
	if w.mayStillCome(s, i) {
		w.undo(s, i)
		return
	}
	s.done(i)
}

// renameOwner goes on under a new owner after somebody forced the old one out.
func (w *world) renameOwner(s *state, i int) {
	a := &s.agents[i]
	*a = agentState{phase: trying, tenure: a.tenure + 1, rounds: a.rounds}
	w.send(s, i, acquire)
}

// sendBeside sends another acquire of agent i without waiting for the answer to the one under way.
func (w *world) sendBeside(s *state, i int) {
	a := &s.agents[i]
	s.beside = append(s.beside, flight{a.call, a.progress, a.sentAt, a.answer})
	w.send(s, i, acquire)
}

// receiveBeside gives an agent the answer to an older acquire, if it still goes on under that owner.
func (w *world) receiveBeside(s *state, f flight) {
	i := int(f.call.agent)
	if a := &s.agents[i]; a.tenure == f.call.tenure && (a.phase == trying || a.phase == waiting || a.phase == holding) {
		w.receiveAcquire(s, i, f.answer, f.sentAt)
	}
}

// askAll makes all other waiters of agent i's client poll: what made this one's answer strange may have
// hit them too.
func (w *world) askAll(s *state, i int) {
	for j := range s.agents {
		if j != i && s.agents[j].phase == waiting && w.scope.Agents[j].Client == w.scope.Agents[i].Client {
			s.agents[j].mustAsk = true
		}
	}
}

// news of a tenure, as an answer or a push tells it. The answer, or the base of the push, was asked for at sentAt.
type news struct {
	token         int64
	sentAt, lasts int16
}

// hold makes agent i believe that it holds.
func (w *world) hold(s *state, i int, n news) {
	a := &s.agents[i]
	if a.phase != trying && a.phase != waiting {
		return
	}
	a.phase, a.token, a.handed, a.deadline, a.weight, a.depth = holding, n.token, firstToken(n.token), n.sentAt+n.lasts, w.scope.Agents[i].Weight, 1
	if ahead := w.scope.Agents[i].Ahead; ahead > 0 {
		a.handed = max(a.handed, firstToken(millis(s.now)*1000+ahead))
	}
	a.proven = 0
	if w.scope.Bugs.PassElapsed {
		a.since = s.now
	}
	if s.now >= a.deadline {
		w.undo(s, i)
		return
	}
	w.handOut(s, i)
}

// extend moves agent i's deadline after a renewal, a re-entry or a poll that found it holding. Another
// token means that the hold it believed in is over.
func (w *world) extend(s *state, i int, r answer, sentAt int16) {
	a := &s.agents[i]
	if r.status != statusHeld || r.token != a.token {
		w.undo(s, i)
		return
	}
	a.deadline = max(a.deadline, sentAt+w.scope.Agents[i].Lease)
}

// mayPoll: of a client's waiters the one with the lowest ticket polls, and whoever has reason to.
func (w *world) mayPoll(s *state, i int) bool {
	a := &s.agents[i]
	if a.call.kind != nothing || a.phase != trying && a.phase != waiting {
		return false
	}
	if a.phase == trying || a.mustAsk {
		return true
	}
	if a.polled == s.now {
		return false
	}
	for j := range s.agents {
		b := &s.agents[j]
		if b.phase == waiting && b.ticket < a.ticket && w.scope.Agents[j].Client == w.scope.Agents[i].Client {
			return false
		}
	}
	return true
}

// pass moves the clock on by a tick: the key may end, and so may beliefs.
func (w *world) pass(s *state) {
	s.now++
	if ends := w.record(s).expiresAt; ends != 0 && ends <= millis(s.now) {
		s.key = 0
	}
	for i := range s.agents {
		if s.agents[i].phase == holding && s.now >= s.agents[i].deadline && !w.passesLate(s, i) {
			w.undo(s, i)
		}
	}
}
