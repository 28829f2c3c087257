package explorer

import (
	"fmt"
	"math/rand"
	"strings"
	"time"
)

// Report tells how an exploration went.
type Report struct {
	Scope    string
	States   int
	Runs     int  // of scripts, each different one once
	Depth    int  // steps of the longest shortest path
	Complete bool // every state of the scope was seen
	Elapsed  time.Duration

	Violation string   // the rule that was broken, or ""
	Trace     []string // the steps that lead there
}

func (r Report) String() string {
	end := "complete"
	switch {
	case r.Violation != "":
		end = "VIOLATION " + r.Violation + "\n    " + strings.Join(r.Trace, "\n    ")
	case !r.Complete:
		end = "ok so far"
	}
	return fmt.Sprintf("%-24s %8d states, depth %2d, %7d runs, %5.1fs: %s", r.Scope, r.States, r.Depth, r.Runs, r.Elapsed.Seconds(), end)
}

// Limits end an exploration early. Zero values do not limit.
type Limits struct {
	Time   time.Duration
	States int
}

// node is a seen state's way back to the beginning: its predecessor and the number of the move there.
type node struct {
	parent int32
	move   uint16
}

// search is a breadth-first search: the first violation it finds has a shortest trace.
type search struct {
	w      *world
	limits Limits
	start  time.Time
	seen   map[fingerprint]struct{}
	nodes  []node
	report Report
}

type reached struct {
	state *state
	id    int32
}

// Explore visits every state of scope, within limits, and stops at the first violation.
func Explore(source Source, scope Scope, limits Limits) (Report, error) {
	w, err := newWorld(source, &scope)
	if err != nil {
		return Report{}, err
	}
	defer w.engine.Close()
	s := &search{w: w, limits: limits, start: time.Now(), seen: map[fingerprint]struct{}{}}
	s.report.Scope = scope.Name
	s.run()
	s.report.States, s.report.Runs, s.report.Elapsed = len(s.nodes), len(w.runs), time.Since(s.start)
	return s.report, nil
}

func (s *search) run() {
	first := s.w.initial()
	s.seen[s.w.identify(first)] = struct{}{}
	s.nodes = []node{{parent: -1}}
	for frontier := []reached{{first, 0}}; len(frontier) > 0; s.report.Depth++ {
		var next []reached
		for k, at := range frontier {
			if k%64 == 0 && s.exhausted() {
				return
			}
			next = s.expand(at, next)
			if s.report.Violation != "" {
				return
			}
			frontier[k].state = nil
		}
		frontier = next
	}
	s.report.Complete = true
}

func (s *search) exhausted() bool {
	return s.limits.Time > 0 && time.Since(s.start) > s.limits.Time || s.limits.States > 0 && len(s.nodes) > s.limits.States
}

// expand appends the successors of a state that were not seen before.
func (s *search) expand(at reached, next []reached) []reached {
	if broken := s.w.ends(at.state); broken != "" {
		s.violated(broken, at.id, -1)
		return nil
	}
	move := -1
	s.w.moves(at.state, func(_ string, n *state) {
		move++
		if s.report.Violation != "" {
			return
		}
		if n.broken != "" {
			s.violated(n.broken, at.id, move)
			return
		}
		id := s.w.identify(n)
		if _, ok := s.seen[id]; ok {
			return
		}
		s.seen[id] = struct{}{}
		next = append(next, reached{n, int32(len(s.nodes))})
		s.nodes = append(s.nodes, node{at.id, uint16(move)})
	})
	return next
}

// ends is closes, where that is promised.
func (w *world) ends(s *state) string {
	if w.scope.Orphans {
		return ""
	}
	return w.closes(s)
}

// violated records a violation after the state id and, if it is not -1, one more move.
func (s *search) violated(what string, id int32, move int) {
	s.report.Violation = what
	var moves []int
	if move >= 0 {
		moves = append(moves, move)
	}
	for ; s.nodes[id].parent >= 0; id = s.nodes[id].parent {
		moves = append([]int{int(s.nodes[id].move)}, moves...)
	}
	s.report.Trace = s.w.trace(moves)
}

// trace plays moves again, with labels.
func (w *world) trace(moves []int) []string {
	w.tracing = true
	defer func() { w.tracing = false }()
	var labels []string
	s := w.initial()
	w.identify(s)
	for _, move := range moves {
		k, from := 0, s
		w.moves(from, func(label string, n *state) {
			if k == move {
				labels = append(labels, fmt.Sprintf("%d: %s", from.now, label))
				s = n
			}
			k++
		})
		w.identify(s)
	}
	return append(labels, "hash: "+fmt.Sprint(w.contents[s.key].fields))
}

// identify brings s into its normal form.
func (w *world) identify(s *state) (id fingerprint) {
	w.pruneGrants(s)
	s.normalize(w.longestClaim)
	id, w.buffer = s.fingerprint(w.buffer)
	return id
}

// Walk takes random ways through a scope that is too large to explore, for the given time.
func Walk(source Source, scope Scope, limit time.Duration, seed int64) (Report, error) {
	w, err := newWorld(source, &scope)
	if err != nil {
		return Report{}, err
	}
	defer w.engine.Close()
	report := Report{Scope: scope.Name}
	random := rand.New(rand.NewSource(seed))
	start := time.Now()
	for time.Since(start) < limit && report.Violation == "" {
		if len(w.runs) > 200_000 {
			report.Runs += len(w.runs)
			w.forget()
		}
		w.walk(random, &report)
	}
	report.Runs += len(w.runs)
	report.Elapsed = time.Since(start)
	return report, nil
}

const longestWalk = 400

// walk goes one way from the beginning until nothing more can happen.
func (w *world) walk(random *rand.Rand, report *Report) {
	s := w.initial()
	var taken []int
	for step := range longestWalk {
		w.identify(s)
		if step%8 == 0 {
			if broken := w.ends(s); broken != "" {
				report.Violation, report.Trace = broken, w.trace(taken)
				return
			}
		}
		next, move, count := w.choose(s, random)
		if count == 0 {
			return
		}
		report.States++
		report.Depth = max(report.Depth, step)
		taken = append(taken, move)
		if next.broken != "" {
			report.Violation, report.Trace = next.broken, w.trace(taken)
			return
		}
		s = next
	}
}

// choose picks a random successor, a broken one if there is any. Moves that use up a budget are taken
// less often, so that they are spread over the walk.
func (w *world) choose(s *state, random *rand.Rand) (chosen *state, move, count int) {
	total := 0
	w.moves(s, func(_ string, n *state) {
		weight := 6
		if n.left != s.left {
			weight = 1
		}
		if n.broken != "" {
			weight = 1 << 30
		}
		total += weight
		if random.Intn(total) < weight {
			chosen, move = n, count
		}
		count++
	})
	return chosen, move, count
}
