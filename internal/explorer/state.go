package explorer

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"
)

type phase uint8

const (
	idle     phase = iota
	named          // a release that is not yet answered names it as next
	trying         // no answer yet
	waiting        // has a ticket, as far as it knows
	holding        // believes that it holds
	leaving        // releases its hold, until that is answered
	undoing        // gives up what it may have: cancelled, lost or refused
	finished       // no rounds left
	crashed
)

type kind uint8

const (
	nothing kind = iota
	acquire
	reenter
	renew
	downgrade // to weight 1
	partial   // of an inner level: the weight stays
	release
	force
)

// call is one script call of an agent under one of its owners.
type call struct {
	kind       kind
	agent      int8
	tenure     int8
	tomb       bool
	next       int8 // 1 + the agent that a release names as next; 0: none
	nextTenure int8
	depth      int8  // that a renewal says
	granted    int64 // the token of the tenure that it means
	weight     int64 // likewise; or what a partial release or a downgrade leaves
	token      int64 // highest base used
}

type progress uint8

const (
	fresh progress = iota // just made; what becomes of it is decided before anything else happens
	sent                  // under way to the server
	ran                   // under way back
)

// answer is what an agent needs of a script's reply.
type answer struct {
	failed bool // refused for lack of memory: nothing ran
	status int8
	token  int64
	seq    int64
	ticket int64
	now    int64 // ms, of a renewal
	more   bool
}

type push struct {
	revoked       bool
	agent, tenure int8
	token         int64
	now, deadline int64 // ms
}

type agentState struct {
	phase  phase
	tenure int8 // number of the present or last owner
	rounds int8 // left to begin

	call     call // under way, if its kind is not nothing
	progress progress
	sentAt   int16
	answer   answer

	unanswered bool // an acquire of this owner, or a release that names it, was given up
	missed     bool // the attempt before was given up
	tomb       bool // this owner's release leaves a tombstone
	retried    bool // an attempt of this owner's release or downgrade was given up
	next       int8 // as in call, for repeating the release
	nextTenure int8

	mustAsk bool // has reason to poll though another waiter of its client is first
	polled  int16
	ticket  int64 // as in the last answer
	kept    push  // read before the answer that was awaited; its token is 0 if there is none

	token    int64 // of the tenure, as the server counts
	handed   int64 // fencing token of its latest session
	proven   int64 // base of the next one, if it is greater
	since    int16 // when it learnt of the tenure, where that matters
	beside   int8  // sessions beside the latest, and whether that began after the deadline: by mistake only
	blind    bool
	weight   int64 // believed
	deadline int16 // believed only before this
	depth    int8

	exempt bool // the server was made to forget this owner: it may believe in its hold for a while
	out    bool // by force: it must not come back
}

// base is an answer that a client got about the name: a grant with a greater token than seq was made after
// the answer's script ran.
type base struct {
	client int8
	sentAt int16
	seq    int64
}

// flight is an acquire beside which its agent has sent another. Its answer still counts if it comes.
type flight struct {
	call     call
	progress progress
	sentAt   int16
	answer   answer
}

type budget int

const (
	lost budget = iota
	late
	slow
	cancel
	crash
	renewals
	flush
	latePush
	stall
	forced
	another
	full
	passes
	budgets
)

type state struct {
	now     int16
	key     int32 // the hash, as its number in world.contents
	full    bool
	agents  []agentState
	bases   []base   // see addBase
	beside  []flight // acquires that are not the latest of their agents
	late    []call   // given up, may still run
	pushes  []push
	top     int64   // the highest token granted so far
	brought int64   // the highest token that a client brought back
	out     int64   // the highest base of a token handed out to anybody
	order   int64   // the latest token handed out to one that the server was not made to forget
	grants  []int64 // tokens granted since the oldest grant by which somebody may yet hand out tokens, see pruneGrants
	left    [budgets]int8
	broken  string // the rule that this state breaks
}

func (s *state) clone() *state {
	n := *s
	n.agents = slices.Clone(s.agents)
	n.bases = slices.Clone(s.bases)
	n.late = slices.Clone(s.late)
	n.beside = slices.Clone(s.beside)
	n.pushes = slices.Clone(s.pushes)
	n.grants = slices.Clone(s.grants)
	return &n
}

// normalize forgets what no longer has any effect, so that states that behave alike are alike.
func (s *state) normalize(longestClaim int16) {
	if s.out <= s.top {
		s.out = 0 // tells nothing more
	}
	for i := range s.agents {
		a := &s.agents[i]
		if a.phase != waiting && a.phase != trying {
			a.ticket, a.polled, a.mustAsk, a.missed = 0, 0, false, false
		}
		if a.phase != waiting && a.phase != trying && a.phase != named {
			a.kept = push{}
		}
		if a.phase != holding {
			a.weight, a.since, a.proven, a.beside, a.blind = 0, 0, 0, 0, false
			if a.phase != leaving {
				a.deadline = 0
			}
			if a.phase != leaving && a.phase != undoing {
				a.token, a.handed = 0, 0
			}
		}
		if a.phase == leaving && a.deadline < s.now {
			a.deadline = s.now
		}
		if a.polled < s.now {
			a.polled = 0 // only whether it polled in this tick counts
		}
		if a.call.kind == nothing {
			a.call, a.progress, a.sentAt, a.answer = call{}, 0, 0, answer{}
		}
	}
	s.bases = slices.DeleteFunc(s.bases, func(b base) bool { return b.sentAt+longestClaim <= s.now }) // what it can date is over
	slices.SortFunc(s.bases, func(a, b base) int { return cmp.Or(cmp.Compare(a.client, b.client), cmp.Compare(a.sentAt, b.sentAt)) })
	slices.SortFunc(s.late, func(a, b call) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.agent, b.agent), cmp.Compare(a.tenure, b.tenure),
			cmp.Compare(boolean(a.tomb), boolean(b.tomb)), cmp.Compare(a.next, b.next), cmp.Compare(a.nextTenure, b.nextTenure), cmp.Compare(a.weight, b.weight), cmp.Compare(a.token, b.token))
	})
}

// fingerprint identifies a state. Two seeds make a collision among the states of a run implausible.
type fingerprint [2]uint64

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func (s *state) fingerprint(buffer []byte) (fingerprint, []byte) {
	e := encoder(buffer[:0])
	e.ints(int64(s.now), int64(s.key), boolean(s.full), s.top, s.brought, s.out, s.order, int64(len(s.late)), int64(len(s.pushes)), int64(len(s.bases)), int64(len(s.beside)), int64(len(s.grants)))
	e.ints(s.grants...)
	for i := range s.agents {
		e.agent(&s.agents[i])
	}
	for _, b := range s.bases {
		e.ints(int64(b.client), int64(b.sentAt), b.seq)
	}
	for _, f := range s.beside {
		e.call(f.call)
		e.ints(int64(f.progress), int64(f.sentAt))
		e.answer(f.answer)
	}
	for _, c := range s.late {
		e.call(c)
	}
	for _, p := range s.pushes {
		e.push(p)
	}
	for _, n := range s.left {
		e = append(e, byte(n))
	}
	return fingerprint{maphash.Bytes(seeds[0], e), maphash.Bytes(seeds[1], e)}, e
}

type encoder []byte

func (e *encoder) ints(ns ...int64) {
	for _, n := range ns {
		*e = binary.AppendVarint(*e, n)
	}
}

func (e *encoder) flags(bs ...bool) {
	bits := byte(0)
	for _, b := range bs {
		bits = bits<<1 | byte(boolean(b))
	}
	*e = append(*e, bits)
}

func (e *encoder) call(c call) {
	*e = append(*e, byte(c.kind), byte(c.agent), byte(c.tenure), byte(c.next), byte(c.nextTenure))
	e.flags(c.tomb)
	e.ints(int64(c.depth), c.granted, c.weight, c.token)
}

func (e *encoder) push(p push) {
	*e = append(*e, byte(p.agent), byte(p.tenure))
	e.flags(p.revoked)
	e.ints(p.token, p.now, p.deadline)
}

func (e *encoder) agent(a *agentState) {
	*e = append(*e, byte(a.phase), byte(a.tenure), byte(a.rounds), byte(a.progress), byte(a.depth), byte(a.next), byte(a.nextTenure))
	e.flags(a.unanswered, a.missed, a.tomb, a.retried, a.mustAsk, a.exempt, a.out)
	e.flags(a.blind)
	e.call(a.call)
	e.ints(int64(a.sentAt), int64(a.polled), int64(a.deadline), int64(a.since), int64(a.beside), a.ticket, a.token, a.handed, a.proven, a.weight)
	e.answer(a.answer)
	e.push(a.kept)
}

func (e *encoder) answer(a answer) {
	e.flags(a.failed, a.more)
	e.ints(int64(a.status), a.token, a.seq, a.ticket, a.now)
}
