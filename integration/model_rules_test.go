package integration

import (
	"fmt"
	"slices"
	"strings"
)

// rules is a model of one name, written from docs/protocol.md and not from the Lua: a weighted semaphore with a
// queue. Its time is virtual. Times are the server's in ms, as in the scripts, except us.
type rules struct {
	maxGrants int   // that one script makes
	us        int64 // the server's clock

	key     string
	exists  bool // there is a key
	holders map[string]*holding
	queue   []place
	alive   map[string]int64 // client: until when it counts as alive, by clock
	tombs   map[string]int64 // owner: until when it is refused
	seq     int64
	number  int64 // of the latest ticket

	clock, clockAt int64 // of alive, which stands still while nobody comes, and when it was read last

	pushes []string // that the last run made, "channel message"
	lone   string   // who is all that is written of the name
}

// holding is a holder.
type holding struct {
	weight, depth, deadline, token int64
}

// place is a ticket.
type place struct {
	owner                           string
	number, weight, capacity, claim int64
}

// The scripts, and the answers of acquire.
const (
	acquireScript = "acquire"
	releaseScript = "release"
	renewScript   = "renew"

	answerHeld    = 1
	answerWaiting = 2
	answerBusy    = 0
	answerRefused = -1
	answerLost    = -2
)

// request is a call of any script. Spans are in ms.
type request struct {
	script               string
	owner                string
	weight, capacity     int64
	depth                int64
	lease, window, claim int64
	granted              int64 // the token of the tenure that a renewal means
	tomb, token          int64
	force                bool
	busy                 bool     // the short way is not looked for
	next                 *request // an acquire
}

const (
	liveStep  = 1500  // ms that the clock of the waiters advances at most
	forceTomb = 30000 // ms for which an owner that was forced out is refused
)

func newRules(maxGrants int, us int64, key string) *rules {
	r := &rules{maxGrants: maxGrants, us: us, key: key}
	r.forget()
	return r
}

// forget is what becomes of everything when the key is deleted or expires. Numbers never recur all the same.
func (m *rules) forget() {
	m.exists, m.seq, m.queue = false, 0, nil
	m.holders, m.alive, m.tombs = map[string]*holding{}, map[string]int64{}, map[string]int64{}
}

func (m *rules) now() int64 { return m.us / 1000 }

func clientOf(owner string) string { return owner[:strings.LastIndexByte(owner, ':')] }

func (m *rules) used() (sum int64) {
	for _, h := range m.holders {
		sum += h.weight
	}
	return sum
}

// latestTomb is when the last tombstone passes.
func (m *rules) latestTomb() (last int64) {
	for _, until := range m.tombs {
		last = max(last, until)
	}
	return last
}

func (m *rules) placeOf(owner string) int {
	return slices.IndexFunc(m.queue, func(p place) bool { return p.owner == owner })
}

// run runs a script and returns its reply.
func (m *rules) run(r request) []int64 {
	m.pushes = nil
	switch r.script {
	case acquireScript:
		return m.acquire(r)
	case releaseScript:
		return m.release(r)
	}
	return m.renew(r)
}

// begin is what acquire and release begin with: the waiters' clock goes on, and holders whose deadline has come go.
func (m *rules) begin() {
	if m.clock += min(max(m.now()-m.clockAt, 0), liveStep); len(m.queue) == 0 {
		m.clock = m.now()
	}
	m.clockAt = m.now()
	for owner, h := range m.holders {
		if h.deadline <= m.now() {
			delete(m.holders, owner)
		}
	}
}

// end is what they end with: a name that nobody uses is forgotten, unless a tombstone or a token in the future is left.
func (m *rules) end() {
	idle := len(m.holders) == 0 && len(m.queue) == 0
	if !m.exists || idle && m.latestTomb() <= m.now() && m.seq <= m.us {
		m.forget()
	}
}

func (m *rules) hold(owner string, weight, deadline int64) int64 {
	m.seq, m.exists = max(m.seq+1, m.us), true
	m.holders[owner] = &holding{weight, 1, deadline, m.seq}
	return m.seq
}

func (m *rules) enqueue(r request) int64 {
	m.number, m.exists = m.number+1, true
	if len(m.queue) == 0 {
		m.number = max(m.number, m.us)
	}
	m.queue = append(m.queue, place{r.owner, m.number, r.weight, r.capacity, r.claim})
	m.alive[clientOf(r.owner)] = m.clock + r.window
	return m.number
}

// serve grants to the queue's head while it fits. It tells whether grants were left.
func (m *rules) serve(me string, lease int64) (more bool) {
	for granted := 0; len(m.queue) > 0; {
		head := m.queue[0]
		switch {
		case head.owner != me && m.alive[clientOf(head.owner)] <= m.clock:
			m.queue = m.queue[1:]
			continue
		case m.used()+head.weight > head.capacity:
			return false
		case granted >= m.maxGrants && head.owner != me:
			return true
		}
		m.queue = m.queue[1:]
		granted++
		if head.owner == me {
			m.hold(me, head.weight, m.now()+lease)
			continue
		}
		token := m.hold(head.owner, head.weight, m.now()+head.claim)
		m.pushes = append(m.pushes, fmt.Sprintf("inbox:%s grant %s %d %d %d %d %s",
			clientOf(head.owner), head.owner, token, m.now(), m.now()+head.claim, len(m.queue), m.key))
	}
	return false
}

// acquire replies {status, token, now, seq, bound of the earliest deadline (not modelled), waiting, ticket, not the head, more}.
func (m *rules) acquire(r request) []int64 {
	more := int64(0)
	answer := func(status, token int64) []int64 {
		return []int64{status, token, m.now(), m.seq, 0, int64(len(m.queue)), 0, 0, more}
	}
	if m.tombs[r.owner] > m.now() {
		return answer(answerRefused, 0)
	}
	m.begin()
	defer m.end()
	if h := m.holders[r.owner]; h != nil {
		h.depth, h.deadline = r.depth, max(h.deadline, m.now()+r.lease)
		return answer(answerHeld, h.token)
	}
	if r.depth > 1 {
		return answer(answerLost, 0)
	}
	if r.window > 0 && len(m.queue) > 0 {
		m.alive[clientOf(r.owner)] = m.clock + r.window
	}
	if m.serve(r.owner, r.lease) {
		more = 1
	}
	if m.holders[r.owner] == nil && len(m.queue) == 0 && m.used()+r.weight <= r.capacity {
		m.hold(r.owner, r.weight, m.now()+r.lease)
	}
	if h := m.holders[r.owner]; h != nil {
		return answer(answerHeld, h.token)
	}
	if r.window == 0 {
		return answer(answerBusy, 0)
	}
	if m.placeOf(r.owner) < 0 {
		m.enqueue(r)
	}
	at := m.placeOf(r.owner)
	reply := answer(answerWaiting, 0)
	reply[6], reply[7] = m.queue[at].number, int64(min(at, 1))
	return reply
}

// release replies {result, seq before its grants, now, the next waiter's ticket, waiting, more}.
func (m *rules) release(r request) []int64 {
	if r.owner == m.lone && r.depth == 0 && r.tomb == 0 && !r.force && !r.busy && r.next == nil {
		m.forget() // whatever the time is
		return []int64{1, 0, m.now(), 0, 0, 0}
	}
	m.begin()
	defer m.end()
	m.seq = max(m.seq, r.token)
	result := m.leave(r)
	if r.depth == 0 && r.tomb > 0 {
		m.tombs[r.owner], m.exists = m.now()+r.tomb, true
	}
	if r.force && m.forceOut() {
		result = 1
	}
	reply := []int64{result, m.seq, m.now(), 0, 0, 0}
	if n := r.next; n != nil && result == 1 && r.depth == 0 &&
		m.holders[n.owner] == nil && m.placeOf(n.owner) < 0 && m.tombs[n.owner] <= m.now() {
		reply[3] = m.enqueue(*n)
	}
	if m.serve("", 0) {
		reply[5] = 1
	}
	reply[4] = int64(len(m.queue))
	return reply
}

// leave is the owner's part of a release.
func (m *rules) leave(r request) (result int64) {
	h, at := m.holders[r.owner], m.placeOf(r.owner)
	switch {
	case r.depth > 0 && h != nil:
		h.weight, h.depth = min(h.weight, r.weight), r.depth
		return 1
	case r.depth > 0:
		return 0
	case h != nil:
		delete(m.holders, r.owner)
		return 1
	case at >= 0:
		m.queue = slices.Delete(m.queue, at, at+1)
		return 2
	}
	return 0
}

// forceOut removes every holder and tells its client. It reports whether there was one.
func (m *rules) forceOut() bool {
	for owner := range m.holders {
		m.tombs[owner] = m.now() + forceTomb
		m.pushes = append(m.pushes, fmt.Sprintf("inbox:%s revoked %s", clientOf(owner), owner))
	}
	found := len(m.holders) > 0
	clear(m.holders)
	return found
}

// renew replies {held, token, now, waiting}.
func (m *rules) renew(r request) []int64 {
	h := m.holders[r.owner]
	if h == nil || h.deadline <= m.now() {
		return []int64{0, 0, m.now(), int64(len(m.queue))}
	}
	h.deadline, h.depth = max(h.deadline, m.now()+r.lease), r.depth
	m.seq = max(m.seq, r.token)
	return []int64{1, h.token, m.us, int64(len(m.queue))}
}
