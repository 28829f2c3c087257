package report

import (
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/bench/internal/result"
)

// Goal is one figure that holdfast is to reach.
type Goal struct {
	Number   int
	What     string
	Target   string
	Reached  string // "not measured" if it was not
	Measured bool
	Pass     bool
}

// judge collects goals over a set.
type judge struct {
	result.Set
	goals []Goal
}

// Goals judges all of them. Medians count; where one slice's worst is asked for, the median of the rounds' worsts.
func Goals(set result.Set) []Goal {
	j := &judge{Set: set}
	j.alone()
	j.ownKeys()
	j.oneKey()
	j.processes()
	j.work()
	j.fair()
	j.holds()
	j.waiters()
	return j.goals
}

const (
	holdfast = "holdfast"
	fairLock = "holdfast FairLock"
	event    = "rueidislock" // the peer that is woken by the server
)

var (
	peers   = []string{"redsync", "redislock", "rueidislock"}
	pollers = []string{"redsync", "redislock", "raw"} // raw is no library, but nothing hinders one from writing it
)

// figure is a measured value, or none.
type figure struct {
	value float64
	ok    bool
	text  string // in place of the bare number
}

func (j *judge) of(scenario, contender, metric string) figure {
	s, ok := j.Of(scenario, contender, metric)
	return figure{value: s.Median, ok: ok, text: fmt.Sprintf("%s (%s–%s)", number(s.Median), number(s.Min), number(s.Max))}
}

// times compares the rate of holdfast with another's.
func (j *judge) times(scenario, other string) figure {
	ours, ok1 := j.Of(scenario, holdfast, "rate")
	theirs, ok2 := j.Of(scenario, other, "rate")
	if !ok1 || !ok2 {
		return figure{}
	}
	ratio := ours.Median / theirs.Median
	return figure{value: ratio, ok: true, text: fmt.Sprintf("%s (%s against %s/s of %s)", number(ratio), number(ours.Median), number(theirs.Median), other)}
}

// best compares with whoever is the fastest of some.
func (j *judge) best(scenario string, others []string) figure {
	name, rate := "", 0.0
	for _, other := range others {
		if s, ok := j.Of(scenario, other, "rate"); ok && s.Median > rate {
			name, rate = other, s.Median
		}
	}
	return j.times(scenario, name)
}

func (j *judge) atMost(goal int, what string, limit float64, unit string, f figure) {
	j.add(goal, what, "≤ "+amount(limit, unit), f, f.value <= limit)
}

func (j *judge) atLeast(goal int, what string, limit float64, f figure) {
	j.add(goal, what, "≥ "+number(limit), f, f.value >= limit)
}

func (j *judge) add(goal int, what, target string, f figure, pass bool) {
	g := Goal{Number: goal, What: what, Target: target, Reached: f.text, Measured: f.ok, Pass: f.ok && pass}
	if !f.ok {
		g.Reached = "not measured"
	}
	j.goals = append(j.goals, g)
}

func amount(n float64, unit string) string { return strings.TrimSpace(number(n) + " " + unit) }

// number is short: three digits that count.
func number(n float64) string {
	switch {
	case n == 0:
		return "0"
	case n >= 999.5:
		return thousands(int64(n + 0.5))
	case n >= 99.5 || n == float64(int64(n)):
		return fmt.Sprintf("%.0f", n)
	case n >= 9.95:
		return fmt.Sprintf("%.1f", n)
	case n >= 0.0995:
		return fmt.Sprintf("%.2f", n)
	}
	return fmt.Sprintf("%.2g", n)
}

func thousands(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
