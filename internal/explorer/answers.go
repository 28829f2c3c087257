package explorer

import "fmt"

// What a script answers and announces must be what is so.

// answers: the reply says what the key says.
func (v *verifier) answers() string {
	lease := int64(0)
	if v.call.kind != force {
		lease = int64(v.scope.Agents[v.call.agent].Lease) * tick
	}
	held, holds := v.after.holders[v.owner]
	queued, waits := v.after.tickets[v.owner]
	switch v.call.kind {
	case acquire, reenter:
		return v.acquireAnswers(held, holds, queued, waits, lease)
	case renew:
		if v.answer.status == 1 && (!holds || held.token != v.answer.token || held.deadline < v.now+lease) {
			return "renewed, but is no such holder: " + v.owner
		}
		if v.answer.status == 0 && holds && held.deadline > v.now {
			return "holds, but was not renewed: " + v.owner
		}
	case release:
		return v.releaseAnswers()
	case force:
		for owner := range v.before.holders {
			if h, ok := v.after.holders[owner]; ok && h.token == v.before.holders[owner].token {
				return "forced out, but not gone: " + owner
			}
		}
	}
	return ""
}

func (v *verifier) releaseAnswers() string {
	_, held := v.before.holders[v.owner]
	waiting := v.reply[4]
	switch {
	case v.after.mentions(v.owner):
		return "released, but not gone: " + v.owner
	case v.answer.status == 1 && !held:
		return "told that it held: " + v.owner
	case v.answer.status != 1 && v.answer.ticket != 0:
		return "queued the next waiter without ending a hold: " + v.owner
	case v.after.exists && v.answer.seq != max(v.before.seq, v.call.token):
		return fmt.Sprintf("answers seq %d, not the one before its grants", v.answer.seq)
	case waiting != v.after.q:
		return fmt.Sprintf("answers %d waiting, are %d", waiting, v.after.q)
	}
	return ""
}

func (v *verifier) acquireAnswers(held holder, holds bool, queued ticket, waits bool, lease int64) string {
	at := func(i int) int64 { return v.reply[i] }
	switch v.answer.status {
	case statusHeld:
		if !holds || held.token != v.answer.token || held.deadline < v.now+lease {
			return "told that it holds, but is no such holder: " + v.owner
		}
	case statusWaiting:
		if !waits || queued.number != v.answer.ticket {
			return "told that it waits, but has no such ticket: " + v.owner
		}
		if first := v.after.queue()[0] == v.owner; first != (at(7) == 0) {
			return fmt.Sprintf("ahead is %d, first in the queue: %t: %s", at(7), first, v.owner)
		}
	default:
		if v.call.kind == acquire && holds && held.deadline > v.now {
			return fmt.Sprintf("holds, but was answered %d: %s", v.answer.status, v.owner)
		}
	}
	switch {
	case at(2) != v.now:
		return "answers another time"
	case v.after.exists && v.answer.status != statusRefused && at(3) != v.after.seq:
		return fmt.Sprintf("answers seq %d, is %d", at(3), v.after.seq)
	case v.answer.status != statusRefused && at(5) != v.after.q:
		return fmt.Sprintf("answers %d waiting, are %d", at(5), v.after.q)
	}
	return ""
}

// announces: a grant to another owner is published, with what was written; nothing else is.
func (v *verifier) announces() string {
	told := map[string]bool{}
	for _, p := range v.pushes {
		owner := string(rune('A'+v.scope.Agents[p.agent].Client)) + fmt.Sprintf(":%d", int(p.agent)*10+int(p.tenure))
		if p.revoked {
			continue
		}
		told[owner] = true
		if h, ok := v.after.holders[owner]; !ok || h.token != p.token || h.deadline != p.deadline || p.now != v.now {
			return "a push announces what is not so: " + owner
		}
	}
	for owner := range v.after.holders {
		if v.isNew(owner) && owner != v.owner && !told[owner] {
			return "granted in silence: " + owner
		}
	}
	return ""
}

// checkRefusal: a full memory may refuse a newcomer, and then nothing has changed.
func checkRefusal(before *record, unchanged bool, c call, owner string) string {
	switch {
	case !unchanged:
		return "changed something, then was refused for lack of memory"
	case c.kind != acquire && c.kind != reenter:
		return "a release or renewal was refused for lack of memory"
	case before.mentions(owner):
		return "a holder's or waiter's acquire was refused for lack of memory: " + owner
	}
	return ""
}
