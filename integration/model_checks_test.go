package integration

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// step is one run of a script, as the checks below see it. They know nothing of the model but its clocks.
type step struct {
	request       request
	reply         []int64
	before, after snapshot
	now, clock    int64            // ms: the server's time, and the waiters'
	capacities    map[string]int64 // that each owner asked under
	full          int              // grants after which a run may stop
	past          *past
}

// past is what the checks remember from step to step.
type past struct {
	highest  int64 // token there was
	capacity int64 // that the last grant was judged by
}

// verify returns what a step broke.
func (s step) verify() error {
	granted := s.granted()
	checks := []func(granted []string) error{
		s.checkShape, s.checkTTL, s.checkIdle, s.checkTokens, s.checkCapacity, s.checkOrder, s.checkTickets, s.checkServed,
	}
	var errs []error
	for _, check := range checks {
		errs = append(errs, check(granted))
	}
	return errors.Join(errs...)
}

// granted lists who became a holder, by token.
func (s step) granted() (owners []string) {
	for owner, h := range s.after.holders {
		if was, ok := s.before.holders[owner]; !ok || was.token != h.token {
			owners = append(owners, owner)
		}
	}
	slices.SortFunc(owners, func(a, b string) int {
		return int(s.after.holders[a].token - s.after.holders[b].token)
	})
	return owners
}

// checkShape: the counters are what they count, and exp comes before every deadline.
func (s step) checkShape([]string) error {
	f := s.after.fixed
	switch {
	case s.after.damage != "":
		return errors.New(s.after.damage)
	case len(s.after.hash) > 0 && s.after.hash["v"] != "1" && (len(s.after.hash) > 1 || len(s.after.holders) != 1): // else a lone holder's
		return errors.New("the key has no version")
	case f["used"] != s.after.used():
		return fmt.Errorf("used is %d, the holders have %d", f["used"], s.after.used())
	case f["q"] != int64(len(s.after.queue)):
		return fmt.Errorf("q is %d with %d tickets", f["q"], len(s.after.queue))
	case len(s.after.queue) > 0 && (f["head"] > s.after.queue[0].number || f["tail"] <= s.after.queue[len(s.after.queue)-1].number):
		return fmt.Errorf("head %d and tail %d do not enclose the queue", f["head"], f["tail"])
	}
	for owner, h := range s.after.holders {
		if f["exp"] == 0 || f["exp"] > h.deadline {
			return fmt.Errorf("exp is %d, the deadline of %s %d", f["exp"], owner, h.deadline)
		}
	}
	return nil
}

// checkTTL: the key outlives whatever is in it, and a name in use has nothing that stays for ever.
func (s step) checkTTL([]string) error {
	if len(s.after.hash) == 0 {
		return nil
	}
	if s.after.ttl <= 0 {
		return errors.New("the key has no TTL")
	}
	end := s.now + s.after.ttl
	for owner, h := range s.after.holders {
		if h.deadline > end {
			return fmt.Errorf("%s holds until %d, the key lives until %d", owner, h.deadline, end)
		}
	}
	for owner, until := range s.after.tombs {
		if until > end {
			return fmt.Errorf("the tombstone of %s lasts until %d, the key lives until %d", owner, until, end)
		}
	}
	for _, p := range s.after.queue {
		if until := s.after.alive[clientOf(p.owner)]; until > end {
			return fmt.Errorf("%s counts as alive until %d, the key lives until %d", p.owner, until, end)
		}
	}
	if seq := s.after.fixed["seq"]; seq > end*1000 {
		return fmt.Errorf("the last token is %d, the key lives until %d", seq, end)
	}
	return nil
}

// checkIdle: when nobody holds and nobody waits, nothing is left but what later calls must find: tombstones and the last
// token, and those not for longer than they are needed. (Marks of life that were there go with the key.)
func (s step) checkIdle([]string) error {
	a := s.after
	if len(a.hash) == 0 || len(a.holders)+len(a.queue) > 0 {
		return nil
	}
	need := (a.fixed["seq"] + 999) / 1000
	for _, until := range a.tombs {
		need = max(need, until)
	}
	if need <= s.now && a.fixed["seq"] <= s.now*1000 && s.wrote() {
		return fmt.Errorf("nobody needs the key any more: %v", a.hash)
	}
	if most := need - s.now + 1000 + 200; a.ttl > most && s.wrote() {
		return fmt.Errorf("the idle key lives for %d ms, %d are needed", a.ttl, most)
	}
	for _, field := range slices.Sorted(maps.Keys(a.fixed)) {
		if !slices.Contains([]string{"v", "seq", "xt", "exp"}, field) { // exp: when the tombstones are swept
			return fmt.Errorf("the idle key has a field %s", field)
		}
	}
	return nil
}

// wrote reports whether the run may have changed anything: a refused acquire and a renewal of nothing may not.
func (s step) wrote() bool {
	return s.request.script == releaseScript || s.request.script == acquireScript && s.reply[0] != answerRefused
}

// checkTokens: each token is greater than all before it.
func (s step) checkTokens(granted []string) error {
	for _, owner := range granted {
		token := s.after.holders[owner].token
		if token <= s.past.highest {
			return fmt.Errorf("%s got token %d after %d", owner, token, s.past.highest)
		}
		s.past.highest = token
	}
	_, held := s.before.holders[s.request.owner]
	if held && s.request.script != acquireScript && s.reply[0] == 1 {
		s.past.highest = max(s.past.highest, s.request.token)
	}
	return nil
}

// checkCapacity: what is in use is no more than the latest to enter allowed; since then it can only have become less.
func (s step) checkCapacity(granted []string) error {
	if n := len(granted); n > 0 {
		s.past.capacity = s.capacities[granted[n-1]]
	}
	if used := s.after.used(); used > s.past.capacity {
		return fmt.Errorf("%d in use, %d there are", used, s.past.capacity)
	}
	for owner, was := range s.before.holders {
		if is, ok := s.after.holders[owner]; ok && is.token == was.token && is.weight > was.weight {
			return fmt.Errorf("the weight of %s rose from %d to %d", owner, was.weight, is.weight)
		}
	}
	return nil
}

// checkOrder: tickets are served in their order, and nobody enters past one.
func (s step) checkOrder(granted []string) error {
	numberOf := func(owner string) int64 {
		if p, ok := s.before.ticket(owner); ok {
			return p.number
		}
		if n := s.request.next; n != nil && n.owner == owner {
			return s.reply[3]
		}
		return 1 << 62 // came without one
	}
	for i, owner := range granted {
		n := numberOf(owner)
		if i > 0 && n <= numberOf(granted[i-1]) {
			return fmt.Errorf("%s was served after %s, who came later", owner, granted[i-1])
		}
		if len(s.after.queue) > 0 && n > s.after.queue[0].number {
			return fmt.Errorf("%s was served before %s, who came first", owner, s.after.queue[0].owner)
		}
	}
	return nil
}

// checkTickets: a waiter leaves the queue by a grant, by its own wish, or because its client is dead.
func (s step) checkTickets(granted []string) error {
	for _, p := range s.before.queue {
		_, stays := s.after.ticket(p.owner)
		left := s.request.owner == p.owner && s.request.script == releaseScript && s.request.depth == 0
		dead := s.before.alive[clientOf(p.owner)] <= s.clock
		if !stays && !left && !dead && !slices.Contains(granted, p.owner) {
			return fmt.Errorf("the ticket of %s is lost", p.owner)
		}
	}
	return nil
}

// checkServed: after a run that serves the queue its head does not fit, whoever lives; the dead make way.
func (s step) checkServed(granted []string) error {
	_, was := s.before.holders[s.request.owner]
	again := s.request.script == acquireScript && s.reply[0] == answerHeld && was && !slices.Contains(granted, s.request.owner)
	serves := s.wrote() && s.reply[0] != answerLost && !again
	if !serves || len(s.after.queue) == 0 || len(granted) >= s.full {
		return nil
	}
	head := s.after.queue[0]
	switch fits := s.after.used()+head.weight <= head.capacity; {
	case s.after.alive[clientOf(head.owner)] <= s.clock && head.owner != s.request.owner:
		return fmt.Errorf("%s is dead and still the first", head.owner)
	case fits:
		return fmt.Errorf("%s waits for %d of %d, and %d are in use", head.owner, head.weight, head.capacity, s.after.used())
	}
	return nil
}
