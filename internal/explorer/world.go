package explorer

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const (
	inbox = "inbox:"

	// The server's clock at tick 0, in ticks, far enough from 0 that no time is mistaken for none.
	epoch = 1000

	// The name is forced free by an owner that holds nothing.
	stranger = "Z:0"
)

// world runs the calls of one scope. What a script does depends on nothing but the call, the hash and the
// clock, so every run is made once and remembered.
type world struct {
	scope         *Scope
	engine        *Engine
	contents      []content // of the key, by number; 0: no key
	numbers       map[string]int32
	runs          map[run]*outcome
	longestClaim  int16
	clients       int8
	exclusive     bool // one at a time
	clockWentBack bool
	closed        map[fingerprint]bool // states from which the play ends well, see closes
	buffer        []byte
	tracing       bool // labels are wanted
}

type content struct {
	fields map[string]string
	record *record
}

type run struct {
	key    int32
	now    int16
	micros int64
	full   bool
	call   call
}

type outcome struct {
	key         int32
	answer      answer
	pushes      []push
	first, last int64 // the lowest and the highest new token
	broken      string
}

func newWorld(source Source, scope *Scope) (*world, error) {
	maxGrants := scope.MaxGrants
	if maxGrants == 0 {
		maxGrants = 1000
	}
	source, err := source.scaled(maxGrants)
	if err != nil {
		return nil, err
	}
	engine, err := NewEngine(source)
	if err != nil {
		return nil, err
	}
	w := &world{scope: scope, engine: engine, exclusive: true}
	w.forget()
	for _, a := range scope.Agents {
		w.longestClaim = max(w.longestClaim, a.Claim, a.Lease)
		w.clockWentBack = w.clockWentBack || a.Ahead > 0
		w.clients = max(w.clients, a.Client+1)
		w.exclusive = w.exclusive && a.Weight == a.Capacity
	}
	return w, nil
}

// forget drops the memory of runs. Earlier states are void then.
func (w *world) forget() {
	w.contents = []content{{record: readRecord(&Server{})}}
	w.numbers = map[string]int32{"": 0}
	w.runs = map[run]*outcome{}
	w.closed = map[fingerprint]bool{}
}

func (w *world) initial() *state {
	c := w.scope
	s := &state{now: 1, left: [budgets]int8{
		lost: c.Lost, late: c.Late, slow: c.Slow, cancel: c.Cancel, crash: c.Crash, renewals: c.Renew, flush: c.Flush,
		latePush: c.LatePush, stall: c.Stall, forced: c.Force, another: c.Beside, full: c.Full, passes: c.Pass,
	}}
	for _, a := range c.Agents {
		s.agents = append(s.agents, agentState{rounds: a.Rounds})
	}
	return s
}

// owner names the owner of an agent's n-th tenure.
func (w *world) owner(agent, tenure int8) string {
	return string(rune('A'+w.scope.Agents[agent].Client)) + ":" + strconv.Itoa(int(agent)*10+int(tenure))
}

func parseOwner(owner string) (agent, tenure int8) {
	n := toInt(owner[strings.LastIndexByte(owner, ':')+1:])
	return int8(n / 10), int8(n % 10)
}

func (w *world) record(s *state) *record { return w.contents[s.key].record }

// millis is the server's time at a tick.
func millis(now int16) int64 { return (epoch + int64(now)) * tick }

// micros is the server's clock: it stands within a tick, but is past every token that it gave, unless
// the tokens themselves are ahead of the time: no scope has it give as many as there are µs in a ms.
func (s *state) micros() int64 {
	begin := millis(s.now) * 1000
	if next := s.top + 1; next > begin && next < begin+1000 {
		return next
	}
	return begin
}

// execute runs c on the server of s.
func (w *world) execute(s *state, c call) answer {
	key := run{s.key, s.now, s.micros(), s.full, c}
	o := w.runs[key]
	if o == nil {
		o = w.run(key)
		w.runs[key] = o
	}
	if o.broken != "" {
		s.broken = o.broken
	}
	if w.scope.Punctual {
		w.checkEvictions(s, c, w.contents[o.key].record)
	}
	w.noteTokens(s, c, o)
	s.key = o.key
	for _, p := range o.pushes {
		if s.agents[p.agent].phase != crashed {
			s.pushes = append(s.pushes, p)
		}
	}
	return o.answer
}

// noteTokens checks that tokens only grow: above every token granted, and every base of a token that was handed out
// locally; of those ahead of the server's clock, above every one that was brought back to a key that was there to keep it.
func (w *world) noteTokens(s *state, c call, o *outcome) {
	if before := w.record(s); before.exists && (c.kind == release || c.kind == renew && o.answer.status == statusHeld) {
		s.brought = max(s.brought, c.token)
		if a := &s.agents[c.agent]; c.kind == release && o.answer.status == 1 && a.tenure == c.tenure {
			s.brought = max(s.brought, baseOf(a.handed)) // whatever it said
		}
	}
	if o.first == 0 {
		return
	}
	if highest := max(s.top, s.brought, s.out); o.first <= highest {
		s.broken = fmt.Sprintf("token %d is not above %d", o.first, highest)
	}
	s.top = max(s.top, o.last)
	if w.exclusive {
		s.grants = append(s.grants, o.last) // of an exclusive name there is one in a run at most, and they grow
	}
}

// checkEvictions: nobody's ticket may go while its client polls in time.
func (w *world) checkEvictions(s *state, c call, after *record) {
	before := w.record(s)
	for i := range s.agents {
		owner := w.owner(int8(i), s.agents[i].tenure)
		_, had := before.tickets[owner]
		if s.agents[i].phase == waiting && had && !after.mentions(owner) && int(c.agent) != i {
			s.broken = "a live waiter was evicted: " + owner
		}
	}
}

// run lets the engine run a call, and verifies what it did.
func (w *world) run(r run) *outcome {
	before := w.contents[r.key]
	server := w.engine.Server
	server.Fields = maps.Clone(before.fields)
	server.ExpiresAt = before.record.expiresAt
	server.Micros = r.micros
	server.MemoryFull = r.full

	script, argv := w.arguments(r.call)
	reply, err := w.engine.Run(script, []string{"name"}, argv)
	o := &outcome{key: w.number(server)}
	after := w.contents[o.key].record
	if err != nil {
		o.answer.failed = true
		if r.full && err.Error() == errMemoryFull.Error() {
			o.broken = checkRefusal(before.record, r.key == o.key, r.call, argv[0][2:])
		} else {
			o.broken = err.Error()
		}
		return o
	}
	numbers := readNumbers(r.call, reply, server.now())
	o.answer = readAnswer(r.call.kind, numbers)
	o.pushes = readPushes(server.Published)
	o.first, o.last = newTokens(before.record, after)
	v := verifier{
		scope: w.scope, before: before.record, after: after,
		now: server.now(), call: r.call, owner: argv[0][2:], answer: o.answer, reply: numbers, pushes: o.pushes,
	}
	o.broken = v.verify()
	return o
}

// newTokens returns the lowest and the highest token that after has and before had not, or 0.
func newTokens(before, after *record) (first, last int64) {
	for owner, h := range after.holders {
		if old, ok := before.holders[owner]; ok && old.token == h.token {
			continue
		}
		if first == 0 || h.token < first {
			first = h.token
		}
		last = max(last, h.token)
	}
	return first, last
}

// number interns what the server has.
func (w *world) number(server *Server) int32 {
	if len(server.Fields) == 0 {
		return 0
	}
	var b strings.Builder
	b.WriteString(strconv.FormatInt(server.ExpiresAt, 36))
	for _, field := range slices.Sorted(maps.Keys(server.Fields)) {
		b.WriteByte(';')
		b.WriteString(field)
		b.WriteByte('=')
		b.WriteString(server.Fields[field])
	}
	n, ok := w.numbers[b.String()]
	if !ok {
		n = int32(len(w.contents))
		w.numbers[b.String()] = n
		w.contents = append(w.contents, content{maps.Clone(server.Fields), readRecord(server)})
	}
	return n
}

// arguments are the script and the ARGV of a call.
func (w *world) arguments(c call) (string, []string) {
	text := func(n int64) string { return strconv.FormatInt(n, 10) }
	ms := func(ticks int16) string { return text(int64(ticks) * tick) }
	a := &w.scope.Agents[c.agent]
	owner := w.owner(c.agent, c.tenure)
	tomb := int16(0)
	if c.tomb {
		tomb = a.Tomb
	}
	h, words := "h:"+owner, func(w ...string) string { return strings.Join(w, " ") }
	switch c.kind {
	case acquire:
		window := a.Window
		if a.Try {
			window = 0
		}
		lone := words(text(a.Weight), "1", "+"+ms(a.Lease), "")
		if w.clockWentBack {
			lone = "" // nothing is promised for a name that only one knows of
		}
		return "acquire", []string{
			h, lone, ms(a.Lease + 1),
			words(text(a.Weight), text(a.Capacity), "1", ms(a.Lease), ms(window), ms(a.Claim), inbox),
		}
	case reenter:
		return "acquire", []string{h, "", ms(a.Lease + 1), words("1", text(a.Capacity), "2", ms(a.Lease), "0", ms(a.Claim), inbox)}
	case renew:
		base := ""
		if c.token > c.granted {
			base = text(c.token)
		}
		return "renew", []string{h, words(text(c.weight), text(int64(c.depth)), "+"+ms(a.Lease), text(c.granted)), ms(a.Lease + 1), base}
	case downgrade, partial:
		return "release", []string{h, "0", words("1", text(c.weight), "0", "0", "0", inbox)}
	case force:
		return "release", []string{"h:" + stranger, "0", words("0", "1", "0", "0", "1", inbox)}
	case release:
		alone := "0"
		if tomb == 0 && c.next == 0 {
			alone = "1"
		}
		argv := []string{h, alone, words("0", text(a.Weight), ms(tomb), text(c.token), "0", inbox)}
		if c.next > 0 {
			n := &w.scope.Agents[c.next-1]
			argv = append(argv, w.owner(c.next-1, c.nextTenure), words(text(n.Weight), text(n.Capacity), ms(n.Claim), ms(n.Window)))
		}
		return "release", argv
	}
	panic("no such call")
}
