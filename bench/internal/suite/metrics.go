package suite

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/histogram"
)

func (m *measured) cycles() int64 {
	var n int64
	for _, o := range m.outcomes {
		n += sum(o.Cycles)
	}
	return n
}

// rate returns cycles per second. Each process's own clock counts, since they begin and end one by one.
func (m *measured) rate() float64 {
	var rate float64
	for _, o := range m.outcomes {
		rate += float64(sum(o.Cycles)) / o.Elapsed.Seconds()
	}
	return rate
}

// metrics names what the reports show. Everything "per cycle" is a rate divided by the rate of cycles.
func (m *measured) metrics() map[string]float64 {
	rate := m.rate()
	perCycle := func(n float64) float64 { return n / m.between.Seconds() / rate }
	var waits histogram.Snapshot
	var worst, sections time.Duration
	var cpu float64
	var goroutines []int64
	for _, o := range m.outcomes {
		waits.Merge(o.Waits)
		worst = max(worst, o.Waits.Max, o.Waiting)
		sections += o.Sections
		cpu += float64(o.CPU.Microseconds()) / o.Elapsed.Seconds()
		goroutines = append(goroutines, o.Cycles...)
	}
	metrics := map[string]float64{
		"rate": rate, "p50_ms": millis(waits.Quantile(0.5)), "p99_ms": millis(waits.Quantile(0.99)), "worst_ms": millis(worst),
		"client_us": cpu / rate, "goroutines": unevenness(goroutines), "starved": zeros(goroutines),
	}
	if !m.kind.Local {
		metrics["scripts"] = perCycle(float64(m.server.Scripts()))
		metrics["commands"] = perCycle(float64(m.server.Sum(m.kind.Commands).Calls))
		metrics["calls"] = perCycle(float64(m.server.All()))
		metrics["in_bytes"] = perCycle(float64(m.server.In))
		metrics["out_bytes"] = perCycle(float64(m.server.Out))
		metrics["server_us"] = perCycle(float64(m.server.CPU) / float64(time.Microsecond))
	}
	if m.work > 0 {
		section := millis(sections) / float64(m.cycles())
		metrics["section_ms"] = section
		metrics["p99_sections"] = metrics["p99_ms"] / section
		metrics["p99_rounds"] = metrics["p99_ms"] / section / float64(m.total())
	}
	m.addProcesses(metrics)
	if m.name == hogs {
		m.addLone(metrics)
	}
	return metrics
}

// addProcesses is for cases with more than one process: how evenly they are served, and their turns.
func (m *measured) addProcesses(metrics map[string]float64) {
	if len(m.outcomes) < 2 {
		return
	}
	var processes []int64
	var turns histogram.Snapshot
	var worst time.Duration
	for _, o := range m.outcomes {
		processes = append(processes, sum(o.Cycles))
		turns.Merge(o.Turns)
		worst = max(worst, o.Turns.Max, o.Away)
	}
	if slices.Max(m.goroutines) == slices.Min(m.goroutines) {
		metrics["processes"] = unevenness(processes)
	}
	if turns.Count() == 0 {
		return
	}
	metrics["turn_p99_ms"] = millis(turns.Quantile(0.99))
	metrics["turn_worst_ms"] = millis(worst)
	metrics["cycles_per_turn"] = float64(m.cycles()) / float64(turns.Count())
}

// addLone tells how the one goroutine fares whose process has no other.
func (m *measured) addLone(metrics map[string]float64) {
	lone := m.outcomes[len(m.outcomes)-1]
	metrics["lone_rate"] = float64(sum(lone.Cycles)) / lone.Elapsed.Seconds()
	metrics["lone_p50_ms"] = millis(lone.Waits.Quantile(0.5))
	metrics["lone_p99_ms"] = millis(lone.Waits.Quantile(0.99))
	metrics["lone_worst_ms"] = millis(max(lone.Waits.Max, lone.Waiting))
}

// violations is an error if exclusion or growing tokens were broken.
func (m *measured) violations() error {
	if m.ownKeys {
		return nil
	}
	if overlaps, regressing := m.ground.Violations(); overlaps+regressing > 0 {
		return fmt.Errorf("BROKEN: %d overlaps, %d tokens did not grow", overlaps, regressing)
	}
	return nil
}

// unevenness is the most served over the least served; one that was not served at all counts as served once.
func unevenness(n []int64) float64 { return float64(slices.Max(n)) / float64(max(slices.Min(n), 1)) }

func zeros(n []int64) float64 {
	count := 0
	for _, x := range n {
		if x == 0 {
			count++
		}
	}
	return float64(count)
}

func sum(n []int64) int64 {
	var total int64
	for _, x := range n {
		total += x
	}
	return total
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
