package report

import (
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/bench/internal/result"
)

// column is a metric in a table.
type column struct {
	header, metric string
	spread         bool // with min and max
	worst          bool // the maximum of all rounds instead of the median
	relative       bool // holdfast's by this
}

// table is a view of the cases whose names begin with one of its prefixes.
type table struct {
	title, text string
	prefix      string
	columns     []column
}

var (
	speed = []column{
		{header: "cycles/s", metric: "rate", spread: true}, {header: "holdfast ÷ this", metric: "rate", relative: true},
		{header: "p50 ms", metric: "p50_ms"}, {header: "p99 ms", metric: "p99_ms", spread: true},
		{header: "worst ms", metric: "worst_ms", spread: true},
		{header: "goroutines max/min", metric: "goroutines"}, {header: "never served", metric: "starved"},
	}
	turns = []column{
		{header: "processes max/min", metric: "processes", spread: true}, {header: "cycles/turn", metric: "cycles_per_turn"},
		{header: "wait for a turn p99 ms", metric: "turn_p99_ms"}, {header: "worst ms", metric: "turn_worst_ms"},
	}
	sections = []column{
		{header: "section ms", metric: "section_ms"}, {header: "p99 in waiters × section", metric: "p99_rounds", spread: true},
	}
	cost = []column{
		{header: "script calls", metric: "scripts"}, {header: "commands sent", metric: "commands"},
		{header: "commands run", metric: "calls"}, {header: "bytes in", metric: "in_bytes"}, {header: "bytes out", metric: "out_bytes"},
		{header: "server µs", metric: "server_us"}, {header: "client µs", metric: "client_us"},
	}
)

var tables = []table{
	{"Alone", "One goroutine, a name of its own; server and client have a core each. Medians of random blocks of 20 cycles.", "a alone", []column{
		{header: "µs a cycle", metric: "median_us", spread: true},
		{header: "× bare", metric: "by_bare", spread: true}, {header: "× raw", metric: "by_raw", spread: true},
		{header: "mean × bare", metric: "mean_by_bare"}, {header: "allocations", metric: "allocs"}, {header: "bytes", metric: "alloc_bytes"},
		{header: "round trips", metric: "trips"},
	}},
	{"", "Per cycle:", "a alone", cost},
	{"Server time of the scripts", "INFO commandstats, in pairs of short turns; \"64\" with 64 goroutines at once. Redisson's are the scripts of the Java library; \"holdfast's commands\" are scripts that do nothing but call what holdfast's call.", "a scripts", []column{
		{header: "µs a cycle", metric: "script_us", spread: true}, {header: "× Redisson", metric: "by_redisson", spread: true},
		{header: "× Redisson without publish", metric: "by_redisson_silent"}, {header: "× raw", metric: "by_raw"},
	}},
	{"Own keys", "16, 64 and 256 goroutines of one process, each with a name of its own.", "b", speed},
	{"", "Per cycle:", "b", cost},
	{"One key, one process", "", "c", speed},
	{"", "Per cycle:", "c", cost},
	{"One key, several processes", "A turn is what a process holds without another in between.", "d", speed},
	{"", "", "d", turns},
	{"", "Per cycle:", "d", cost},
	{"One against sixteen", "One goroutine of a process of its own against 16 of another.", "d 16 against 1", []column{
		{header: "its cycles/s", metric: "lone_rate"}, {header: "its wait p50 ms", metric: "lone_p50_ms"},
		{header: "p99 ms", metric: "lone_p99_ms", spread: true}, {header: "worst ms", metric: "lone_worst_ms", spread: true},
	}},
	{"With 2 ms of work inside", "sync.Mutex has all goroutines in one process.", "e", append(append([]column{}, speed...), sections...)},
	{"", "", "e d", turns},
	{"", "Per cycle:", "e", cost},
	{"Waking another process", "From before the call of a script that publishes to when a goroutine of the other process runs, both having slept 2 ms: what a hand-over costs at least.", "e wake", []column{
		{header: "median µs", metric: "wake_us", spread: true}, {header: "p99 µs", metric: "wake_p99_us", spread: true},
	}},
	{"Read-write lock", "90 and 99 % of the cycles read. Peers have no such lock.", "f", speed},
	{"", "Per cycle:", "f", cost},
	{"Semaphore of 8", "64 callers, in one process and in four. Peers have none.", "g", speed},
	{"", "Per cycle:", "g", cost},
	{"Many holds", "", "h", []column{
		{header: "holds", metric: "holds"}, {header: "for s", metric: "seconds"}, {header: "lost", metric: "lost"},
		{header: "heap B a hold", metric: "heap_bytes"}, {header: "stacks B a hold", metric: "stack_bytes"},
		{header: "goroutines", metric: "goroutines"}, {header: "watchdogs", metric: "watchdogs"},
		{header: "runs that renew/s", metric: "renewals"}, {header: "client CPU %", metric: "client_percent"},
		{header: "server CPU %", metric: "server_percent"}, {header: "taken in s", metric: "acquired_s"},
	}},
	{"Many waiters", "Of names that another client holds.", "i", []column{
		{header: "waiting", metric: "waiters"}, {header: "names", metric: "names"},
		{header: "commands/s and name", metric: "commands_per_name"}, {header: "heap B a waiter", metric: "heap_bytes"},
		{header: "stack B a waiter", metric: "stack_bytes"}, {header: "other goroutines", metric: "goroutines"},
		{header: "pub/sub connections", metric: "subscribers"}, {header: "server CPU %", metric: "server_percent"},
		{header: "woken in error", metric: "ended"},
	}},
	{"Queues", "A number of waiting goroutines over 4 processes, and one that holds.", "k", speed},
	{"", "", "k", turns},
	{"", "Per cycle:", "k", cost},
	{"Order of the fair lock", "Waiters of 4 clients queue in groups, a group when the one before stands in the queue.", "k order", []column{
		{header: "groups", metric: "groups"}, {header: "served", metric: "served"},
		{header: "served too early", metric: "inversions", worst: true}, {header: "tokens that did not grow", metric: "tokens", worst: true},
	}},
}

// markdown returns the table, or nothing if none of its metrics was measured.
func (t *table) markdown(set result.Set, order []string) string {
	var rows []string
	for _, scenario := range set.Cases() {
		if !strings.HasPrefix(scenario, t.prefix) {
			continue
		}
		for _, contender := range set.Contenders(scenario, order) {
			if row := t.row(set, scenario, contender); row != "" {
				rows = append(rows, row)
			}
		}
	}
	if len(rows) == 0 {
		return ""
	}
	var b strings.Builder
	if t.title != "" {
		fmt.Fprintf(&b, "### %s\n\n", t.title)
	}
	if t.text != "" {
		fmt.Fprintf(&b, "%s\n\n", t.text)
	}
	b.WriteString("| case | |")
	for _, c := range t.columns {
		fmt.Fprintf(&b, " %s |", c.header)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(t.columns)) + "\n" + strings.Join(rows, "\n") + "\n\n")
	return b.String()
}

func (t *table) row(set result.Set, scenario, contender string) string {
	row, found := fmt.Sprintf("| %s | %s |", scenario, contender), false
	for _, c := range t.columns {
		s, ok := set.Of(scenario, contender, c.metric)
		found = found || ok
		if c.relative {
			ours, _ := set.Of(scenario, measuredOf(set, scenario), c.metric)
			s.Median = ours.Median / s.Median
		}
		row += " " + c.cell(s, ok) + " |"
	}
	if !found {
		return ""
	}
	return row
}

// measuredOf returns which of holdfast's primitives a case is about: the one that not every case has.
func measuredOf(set result.Set, scenario string) string {
	for _, name := range set.Contenders(scenario, nil) {
		if strings.HasPrefix(name, holdfast+" ") {
			return name
		}
	}
	return holdfast
}

func (c *column) cell(s result.Spread, ok bool) string {
	switch {
	case !ok:
		return ""
	case c.worst:
		return number(s.Max)
	case c.spread && s.Rounds > 1:
		return fmt.Sprintf("%s (%s–%s)", number(s.Median), number(s.Min), number(s.Max))
	}
	return number(s.Median)
}
