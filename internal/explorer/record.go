package explorer

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// record is the content of a key, read for checking.
type record struct {
	exists    bool
	expiresAt int64
	version   string

	used, exp, seq, q, head, tail, xt, vt, lt int64

	holders    map[string]holder
	tickets    map[string]ticket
	places     map[int64]string // owner by ticket number
	aliveUntil map[string]int64 // by client, on the clock vt
	tombstones map[string]int64 // by owner: until when, in ms
}

type holder struct{ weight, depth, deadline, token int64 }

type ticket struct{ number, weight, capacity, claim int64 }

func readRecord(s *Server) *record {
	r := &record{
		exists: len(s.Fields) > 0, expiresAt: s.ExpiresAt, version: s.Fields["v"],
		holders: map[string]holder{}, tickets: map[string]ticket{}, places: map[int64]string{},
		aliveUntil: map[string]int64{}, tombstones: map[string]int64{},
	}
	fixed := map[string]*int64{
		"used": &r.used, "exp": &r.exp, "seq": &r.seq, "q": &r.q, "head": &r.head, "tail": &r.tail, "xt": &r.xt, "vt": &r.vt, "lt": &r.lt,
	}
	for field, value := range s.Fields {
		if number, ok := fixed[field]; ok {
			*number = toInt(value)
			continue
		}
		kind, rest, _ := strings.Cut(field, ":")
		switch n := ints(value); kind {
		case "h":
			r.holders[rest] = holder{n[0], n[1], n[2], n[3]}
			if strings.Contains(value, "+") { // the lease, from the last renewal or the token
				since := n[3]
				if n[4] > 0 {
					since = n[4]
				}
				r.holders[rest] = holder{n[0], n[1], since/1000 + n[2], n[3]}
			}
		case "t":
			r.tickets[rest] = ticket{n[0], n[1], n[2], n[3]}
		case "w":
			r.places[toInt(rest)] = value
		case "c":
			r.aliveUntil[rest] = n[0]
		case "x":
			r.tombstones[rest] = n[0]
		}
	}
	if _, told := s.Fields["used"]; !told {
		r.follow()
	}
	if r.version == "" && len(s.Fields) == 1 && len(r.holders) == 1 {
		r.version = "1" // a lone holder's
	}
	return r
}

// follow fills in what a lone holder leaves to be found.
func (r *record) follow() {
	for _, h := range r.holders {
		r.used, r.seq = r.used+h.weight, max(r.seq, h.token)
		if r.exp == 0 || h.deadline < r.exp {
			r.exp = h.deadline
		}
	}
}

func toInt(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

func ints(s string) (n [5]int64) {
	for i, word := range strings.Fields(s) {
		if i < len(n) {
			n[i] = toInt(word)
		}
	}
	return n
}

// mentions tells whether owner holds or waits.
func (r *record) mentions(owner string) bool {
	_, holds := r.holders[owner]
	_, waits := r.tickets[owner]
	return holds || waits
}

// queue lists the owners of the tickets in their order.
func (r *record) queue() []string {
	return slices.SortedFunc(maps.Keys(r.tickets), func(a, b string) int {
		return int(r.tickets[a].number - r.tickets[b].number)
	})
}

// clock is what the clock of the tickets' liveness shows at now: it moves a step at most.
func (r *record) clock(now int64) int64 {
	if r.q == 0 {
		return now
	}
	return r.vt + min(max(now-r.lt, 0), tick)
}

// alive tells whether the client of owner counts as alive.
func (r *record) alive(owner string) bool {
	return r.aliveUntil[clientOf(owner)] > r.vt
}

func clientOf(owner string) string {
	return owner[:strings.LastIndexByte(owner, ':')]
}
