package explorer

import "fmt"

// Answers of the scripts.
const (
	statusHeld    = 1
	statusWaiting = 2
	statusBusy    = 0
	statusRefused = -1
	statusLost    = -2
)

// verifier checks what one script run did to the key and what it answered.
type verifier struct {
	scope         *Scope
	before, after *record
	now           int64 // ms
	call          call
	owner         string
	answer        answer
	reply         [9]int64
	pushes        []push
}

// verify returns the first rule that is broken, or "".
func (v *verifier) verify() string {
	rules := []func() string{v.answers, v.announces, v.evictsOnlyTheDead}
	if v.after.exists {
		rules = append(rules, v.counts, v.queueIsWhole, v.lives, v.keepsTokens, v.changesNoHold, v.grantsInTime, v.staysWithinCapacity, v.servesInOrder, v.servesTheHead)
	}
	for _, rule := range rules {
		if broken := rule(); broken != "" {
			return broken
		}
	}
	return ""
}

// counts: the fixed fields agree with the fields of owners.
func (v *verifier) counts() string {
	used, earliest, latestTomb := int64(0), int64(0), int64(0)
	for _, h := range v.after.holders {
		used += h.weight
		if earliest == 0 || h.deadline < earliest {
			earliest = h.deadline
		}
	}
	for _, until := range v.after.tombstones {
		latestTomb = max(latestTomb, until)
	}
	switch r := v.after; {
	case r.version != "1":
		return "the key has no version"
	case used != r.used:
		return fmt.Sprintf("used is %d, the holders' weights are %d", r.used, used)
	case earliest != 0 && (r.exp == 0 || r.exp > earliest):
		return "exp is later than a deadline"
	case int64(len(r.tickets)) != r.q:
		return fmt.Sprintf("q is %d for %d tickets", r.q, len(r.tickets))
	case latestTomb > v.now && latestTomb > r.xt:
		return "xt is earlier than a tombstone's end"
	case r.q == 0 && (r.head != 0 || r.tail != 0 || r.vt != 0):
		return "something of an empty queue is left"
	}
	return ""
}

func (v *verifier) queueIsWhole() string {
	r := v.after
	for owner, t := range r.tickets {
		_, holds := r.holders[owner]
		switch {
		case r.places[t.number] != owner:
			return "a ticket without a place: " + owner
		case t.number < r.head || t.number >= r.tail:
			return "a ticket outside the queue: " + owner
		case holds:
			return "holds and waits: " + owner
		}
	}
	for number, owner := range r.places {
		if r.tickets[owner].number != number {
			return "a place without a ticket: " + owner
		}
	}
	return ""
}

// lives: the key outlives every deadline in it, and does not stay for nothing.
func (v *verifier) lives() string {
	r := v.after
	latest, inUse := int64(0), len(r.tickets) > 0
	for _, h := range r.holders {
		latest, inUse = max(latest, h.deadline), true
	}
	for _, until := range r.tombstones {
		if until > v.now {
			latest, inUse = max(latest, until), true
		}
	}
	if v.answer.status == statusWaiting && v.call.kind == acquire {
		latest = max(latest, v.now+int64(v.scope.Agents[v.call.agent].Window+2)*tick)
	}
	switch {
	case r.expiresAt == 0:
		return "the key has no end"
	case r.expiresAt <= latest:
		return fmt.Sprintf("the key ends at %d, something in it at %d", r.expiresAt, latest)
	case !inUse && r.expiresAt > max(r.seq/1000+1, r.xt)+tick:
		return "an idle name keeps its key"
	case !inUse && r.expiresAt*1000 < r.seq:
		return "the key ends before its last token is in the past"
	}
	return ""
}

func (v *verifier) isNew(owner string) bool {
	old, ok := v.before.holders[owner]
	return !ok || old.token != v.after.holders[owner].token
}

// keepsTokens: what a client brings back to a key is not forgotten while the key lives.
func (v *verifier) keepsTokens() string {
	brought := v.call.kind == release || v.call.kind == renew && v.answer.status == statusHeld
	if brought && v.before.exists && v.after.seq < v.call.token || v.after.seq < v.before.seq {
		return fmt.Sprintf("seq %d is lower than a token that was given", v.after.seq)
	}
	return ""
}

// changesNoHold: a hold keeps its token, gets no heavier, ends no earlier, and does not come back once it
// is over.
func (v *verifier) changesNoHold() string {
	for owner, h := range v.after.holders {
		old := v.before.holders[owner]
		switch {
		case v.isNew(owner):
		case h.weight > old.weight:
			return "a hold got heavier: " + owner
		case h.deadline < old.deadline:
			return "a hold got shorter: " + owner
		case h.deadline > old.deadline && old.deadline <= v.now:
			return "a hold came back: " + owner
		}
	}
	return ""
}

// grantsInTime: whoever asked gets its lease, the others get their claims if they are alive.
func (v *verifier) grantsInTime() string {
	clock := v.before.clock(v.now)
	for owner, h := range v.after.holders {
		if !v.isNew(owner) {
			continue
		}
		agent, _ := parseOwner(owner)
		lasts := v.scope.Agents[agent].Claim
		if owner == v.owner {
			lasts = v.scope.Agents[agent].Lease
		}
		switch {
		case h.deadline != v.now+int64(lasts)*tick:
			return fmt.Sprintf("%s got %d ms", owner, h.deadline-v.now)
		case owner == v.owner && v.call.kind != acquire:
			return fmt.Sprintf("a %s made a hold: %s", kindNames[v.call.kind], owner)
		case owner != v.owner && v.after.aliveUntil[clientOf(owner)] <= clock:
			return "granted to the dead: " + owner
		}
	}
	return ""
}

// evictsOnlyTheDead: a ticket goes when its owner is served or says so, or when its client is dead.
func (v *verifier) evictsOnlyTheDead() string {
	clock := v.before.clock(v.now)
	for owner := range v.before.tickets {
		if !v.after.mentions(owner) && owner != v.owner && v.before.aliveUntil[clientOf(owner)] > clock {
			return "a live ticket is gone: " + owner
		}
	}
	return ""
}

// staysWithinCapacity: each new holder's own capacity bounds what is held once it is in.
func (v *verifier) staysWithinCapacity() string {
	for owner, h := range v.after.holders {
		if !v.isNew(owner) {
			continue
		}
		used := int64(0)
		for _, other := range v.after.holders {
			if other.token <= h.token {
				used += other.weight
			}
		}
		if agent, _ := parseOwner(owner); used > v.scope.Agents[agent].Capacity {
			return "granted above its own capacity: " + owner
		}
	}
	return ""
}

// servesInOrder: nobody becomes a holder while a live ticket before its own is left.
func (v *verifier) servesInOrder() string {
	queue := v.after.queue()
	for owner := range v.after.holders {
		if !v.isNew(owner) {
			continue
		}
		own, queued := v.before.tickets[owner]
		for _, other := range queue {
			if v.after.alive(other) && (!queued || v.after.tickets[other].number < own.number) {
				return fmt.Sprintf("%s overtook %s", owner, other)
			}
		}
	}
	return ""
}

// servesTheHead: whoever runs a script that grants leaves no waiter that could be served.
func (v *verifier) servesTheHead() string {
	if !v.grants() || v.after.exp != 0 && v.after.exp <= v.now {
		return ""
	}
	for _, owner := range v.after.queue() {
		if !v.after.alive(owner) {
			continue
		}
		if t := v.after.tickets[owner]; v.after.used+t.weight <= t.capacity {
			return "could be served and was not: " + owner
		}
		return ""
	}
	return ""
}

// grants tells whether the run is one that serves the queue, all of it.
func (v *verifier) grants() bool {
	if v.scope.MaxGrants > 0 || v.answer.more {
		return false
	}
	switch v.call.kind {
	case acquire, reenter:
		if v.answer.status == statusRefused || v.answer.status == statusLost {
			return false
		}
		return v.answer.status != statusHeld || v.isNew(v.owner) // a holder's call serves nobody
	case release, partial, downgrade, force:
		return true
	}
	return false
}
