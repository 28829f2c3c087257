package explorer

import (
	"fmt"
	"slices"
)

// emit receives a successor and how it came about (only while tracing).
type emit func(label string, next *state)

// moves calls emit with every state that can follow s, in a fixed order.
func (w *world) moves(s *state, emit emit) {
	for i := range s.agents {
		w.callMoves(s, i, emit)
		w.agentMoves(s, i, emit)
	}
	w.besideMoves(s, emit)
	w.environmentMoves(s, emit)
	w.timeMoves(s, emit)
}

// step emits what follows from change, for every fate of the calls that it makes.
func (w *world) step(s *state, emit emit, label string, change func(n *state)) {
	n := s.clone()
	change(n)
	w.settle(n, label, emit)
}

// settle decides what becomes of calls just made: answered at once, or hit by a fault while any is left.
func (w *world) settle(n *state, label string, emit emit) {
	for i := range n.agents {
		a := &n.agents[i]
		if a.call.kind == nothing || a.progress != fresh || n.broken != "" {
			continue
		}
		if w.scope.Unfused {
			a.progress = sent
			continue
		}
		w.fault(n, lost, label, ", reply lost", emit, func(x *state) { w.serve(x, i); w.giveUp(x, i) })
		w.fault(n, late, label, ", late", emit, func(x *state) { w.postpone(x, i) })
		w.fault(n, slow, label, ", slow", emit, func(x *state) { x.agents[i].progress = sent })
		w.serve(n, i)
		w.receive(n, i)
		w.settle(n, label, emit)
		return
	}
	w.check(n)
	emit(label, n)
}

func (w *world) fault(n *state, b budget, label, what string, emit emit, change func(x *state)) {
	if n.left[b] == 0 {
		return
	}
	x := n.clone()
	x.left[b]--
	change(x)
	if w.tracing {
		label += what
	}
	w.settle(x, label, emit)
}

// postpone gives the call of agent i up before it ran; it may still run.
func (w *world) postpone(s *state, i int) {
	s.late = append(s.late, s.agents[i].call)
	w.giveUp(s, i)
}

func (w *world) say(s *state, i int, what string) string {
	if !w.tracing {
		return ""
	}
	return w.owner(int8(i), s.agents[i].tenure) + " " + what
}

var kindNames = [...]string{"", "acquire", "re-entry", "renewal", "downgrade", "partial release", "release", "force"}

// callMoves are the fates of a call that is under way.
func (w *world) callMoves(s *state, i int, emit emit) {
	a := &s.agents[i]
	if a.call.kind == nothing {
		return
	}
	of := kindNames[a.call.kind]
	if s.left[another] > 0 && a.call.kind == acquire && (a.phase == trying || a.phase == waiting) {
		w.step(s, emit, w.say(s, i, "sends another"), func(n *state) { n.left[another]--; w.sendBeside(n, i) })
	}
	if a.progress == sent {
		w.step(s, emit, w.say(s, i, of+" runs"), func(n *state) { w.serve(n, i) })
		if s.left[late] > 0 {
			w.step(s, emit, w.say(s, i, of+" times out"), func(n *state) { n.left[late]--; w.postpone(n, i) })
		}
		return
	}
	w.step(s, emit, w.say(s, i, of+" is answered"), func(n *state) { w.receive(n, i) })
	if s.left[lost] > 0 {
		w.step(s, emit, w.say(s, i, of+"'s reply is lost"), func(n *state) { n.left[lost]--; w.giveUp(n, i) })
	}
}

// besideMoves are the fates of acquires beside which another was sent.
func (w *world) besideMoves(s *state, emit emit) {
	for j, f := range s.beside {
		if f.progress == sent {
			w.step(s, emit, w.about("the older acquire of %s runs", w.owner(f.call.agent, f.call.tenure)), func(n *state) {
				n.beside[j].answer, n.beside[j].progress = w.execute(n, f.call), ran
			})
			continue
		}
		w.step(s, emit, w.about("the older acquire of %s is answered", w.owner(f.call.agent, f.call.tenure)), func(n *state) {
			n.beside = slices.Delete(n.beside, j, j+1)
			w.receiveBeside(n, f)
		})
	}
}

// agentMoves are what agent i may decide to do.
func (w *world) agentMoves(s *state, i int, emit emit) {
	a := &s.agents[i]
	do := func(what string, change func(n *state)) { w.step(s, emit, w.say(s, i, what), change) }
	switch a.phase {
	case idle:
		w.step(s, emit, w.about("%s begins", w.owner(int8(i), a.tenure+1)), func(n *state) { w.begin(n, i) })
	case named:
		do("acquires by itself", func(n *state) { w.acquireNamed(n, i) })
	case trying, waiting:
		if w.mayPoll(s, i) {
			do("polls", func(n *state) { w.send(n, i, acquire) })
		}
	case holding:
		w.holdingMoves(s, i, do)
	case leaving, undoing:
		if a.call.kind == nothing {
			do("is released again", func(n *state) { w.releaseAgain(n, i) })
		}
	}
	if s.left[cancel] > 0 && (a.phase == named || a.phase == trying || a.phase == waiting) {
		do("gives up", func(n *state) { n.left[cancel]--; w.undo(n, i) })
	}
}

func (w *world) holdingMoves(s *state, i int, do func(string, func(*state))) {
	a, c := &s.agents[i], &w.scope.Agents[i]
	do("releases", func(n *state) { w.end(n, i, leaving) })
	w.passMoves(s, i, do)
	if a.call.kind != nothing {
		return
	}
	if s.left[renewals] > 0 {
		do("renews", func(n *state) { n.left[renewals]--; w.send(n, i, renew) })
	}
	if c.Downgrades && a.weight > 1 {
		do("downgrades", func(n *state) { n.agents[i].weight = 1; w.send(n, i, downgrade) })
	}
	if c.Downgrades && a.weight == 1 && a.retried {
		do("downgrades again", func(n *state) { w.send(n, i, downgrade) })
	}
	if c.Reenters && a.depth == 1 {
		do("re-enters", func(n *state) { n.agents[i].depth = 2; w.send(n, i, reenter) })
	}
	if a.depth == 2 {
		do("releases the inner hold", func(n *state) { n.agents[i].depth = 1; w.send(n, i, partial) })
	}
}

// environmentMoves are what happens to agents.
func (w *world) environmentMoves(s *state, emit emit) {
	w.messageMoves(s, emit)
	if s.left[crash] > 0 {
		for client := range w.clients {
			w.step(s, emit, w.about("client %c crashes", 'A'+client), func(n *state) { n.left[crash]--; w.crash(n, client) })
		}
	}
	if s.left[flush] > 0 && s.key != 0 {
		w.step(s, emit, "the key is flushed", func(n *state) {
			n.left[flush]--
			w.exempt(n)
			n.key = 0
		})
	}
	if s.left[forced] > 0 && s.key != 0 {
		w.step(s, emit, "the name is forced free", func(n *state) {
			n.left[forced]--
			w.exempt(n)
			w.forceOut(n)
		})
	}
	if s.left[full] > 0 && !s.full {
		w.step(s, emit, "the memory is full", func(n *state) { n.left[full]--; n.full = true })
	}
	if s.full {
		w.step(s, emit, "the memory has room", func(n *state) { n.full = false })
	}
}

func (w *world) messageMoves(s *state, emit emit) {
	for j, c := range s.late {
		if j > 0 && c == s.late[j-1] {
			continue
		}
		w.step(s, emit, w.about("the late %s of %s runs", kindNames[c.kind], w.owner(c.agent, c.tenure)), func(n *state) {
			n.late = append(n.late[:j:j], n.late[j+1:]...)
			w.execute(n, c)
		})
	}
	for j, p := range s.pushes {
		w.step(s, emit, w.about("push %d for %s arrives", p.token, w.owner(p.agent, p.tenure)), func(n *state) {
			n.pushes = append(n.pushes[:j:j], n.pushes[j+1:]...)
			w.deliver(n, p)
		})
	}
	if len(s.pushes) > 0 {
		w.step(s, emit, "pushes are lost", func(n *state) { n.pushes = nil })
	}
}

func (w *world) about(format string, args ...any) string {
	if !w.tracing {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// crash ends a client. What it sent may still run.
func (w *world) crash(s *state, client int8) {
	for _, f := range s.beside {
		if w.scope.Agents[f.call.agent].Client == client && f.progress == sent {
			s.late = append(s.late, f.call)
		}
	}
	s.beside = slices.DeleteFunc(s.beside, func(f flight) bool { return w.scope.Agents[f.call.agent].Client == client })
	for i := range s.agents {
		if w.scope.Agents[i].Client != client {
			continue
		}
		s.abandonCall(i)
		s.agents[i] = agentState{phase: crashed, tenure: s.agents[i].tenure}
	}
	s.bases = slices.DeleteFunc(s.bases, func(b base) bool { return b.client == client })
}

// exempt marks the owners that the server is about to be made to forget: nobody can promise that they
// know at once.
func (w *world) exempt(s *state) {
	for i := range s.agents {
		a := &s.agents[i]
		if _, holds := w.record(s).holders[w.owner(int8(i), a.tenure)]; holds || a.phase == holding || a.phase == leaving {
			a.exempt = true
		}
	}
}

// forceOut frees the name of its holders.
func (w *world) forceOut(s *state) {
	for i := range s.agents {
		h := w.record(s).holders[w.owner(int8(i), s.agents[i].tenure)]
		s.agents[i].out = h.deadline > millis(s.now) // one whose hold is over may well wait again
	}
	w.execute(s, call{kind: force})
}

func (w *world) timeMoves(s *state, emit emit) {
	if w.scope.Punctual && !w.allPolled(s) {
		return
	}
	if s.now <= w.scope.Ticks {
		w.step(s, emit, "a tick passes", func(n *state) {
			if n.left[latePush] == 0 {
				n.pushes = nil
			} else if len(n.pushes) > 0 {
				n.left[latePush]--
			}
			w.pass(n)
		})
	}
	if s.left[stall] > 0 {
		w.step(s, emit, "a stall passes", func(n *state) {
			n.left[stall]--
			for range w.scope.StallTicks {
				w.pass(n)
			}
		})
	}
}

func (w *world) allPolled(s *state) bool {
	for i := range s.agents {
		if a := &s.agents[i]; a.phase == trying || a.phase == waiting && a.polled != s.now {
			return false
		}
	}
	return true
}
