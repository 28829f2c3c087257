package report

import "fmt"

func (j *judge) alone() {
	const alone, scripts = "a alone", "a scripts"
	j.atMost(1, "lock and release alone, in units of two bare calls", 1.10, "", j.of(alone, holdfast, "by_bare"))
	j.atMost(1, "the same, in units of raw", 1.10, "", j.of(alone, holdfast, "by_raw"))
	j.atMost(1, "allocations a cycle", 20, "", j.of(alone, holdfast, "allocs"))
	j.atMost(1, "server time of the scripts, in units of Redisson's", 1.10, "", j.of(scripts, holdfast, "by_redisson"))
}

func (j *judge) ownKeys() {
	j.atLeast(2, "256 goroutines with own keys, × the best peer", 1.4, j.best("b 256", peers))
	j.atLeast(2, "the same, × redsync", 3.5, j.times("b 256", "redsync"))
	j.atLeast(2, "16 goroutines with own keys, × the best peer", 0.95, j.best("b 16", peers))
}

func (j *judge) oneKey() {
	for _, n := range []int{16, 256} {
		c := fmt.Sprintf("c %d", n)
		j.atLeast(3, fmt.Sprintf("%d goroutines on one key, × %s", n, event), 50, j.times(c, event))
		j.atMost(3, "worst wait", 25, "ms", j.of(c, holdfast, "worst_ms"))
		j.atMost(3, "cycles of goroutines, max/min", 1.2, "", j.of(c, holdfast, "goroutines"))
	}
}

func (j *judge) processes() {
	for _, n := range []int{4, 16} {
		d := fmt.Sprintf("d %dx4", n)
		j.atLeast(4, fmt.Sprintf("%d processes × 4 goroutines on one key, × %s", n, event), 50, j.times(d, event))
		j.atLeast(4, "the same, × the best that polls", 20, j.best(d, pollers))
		j.atMost(4, "cycles of processes, max/min", 1.3, "", j.of(d, holdfast, "processes"))
	}
	j.atMost(4, "worst wait with 16 processes", 100, "ms", j.of("d 16x4", holdfast, "worst_ms"))
	j.atMost(4, "worst wait of one against 16 of another process", 25, "ms", j.of("d 16 against 1", holdfast, "lone_worst_ms"))
}

func (j *judge) work() {
	for _, e := range []string{"e c 16", "e c 256", "e d 4x4", "e d 16x4"} {
		j.atLeast(5, e+": 2 ms of work inside, × sync.Mutex", 0.96, j.times(e, "sync.Mutex"))
		p99 := j.of(e, holdfast, "p99_rounds")
		for _, peer := range peers {
			if f := j.of(e, peer, "p99_rounds"); f.ok {
				p99.text += fmt.Sprintf(", %s %s", peer, number(f.value))
			}
		}
		j.atMost(5, "p99 in units of waiters × section", 1.4, "", p99)
	}
}

func (j *judge) fair() {
	lowest, highest := figure{}, figure{}
	for _, n := range []int{1, 10, 100, 1000, 10000} {
		order := fmt.Sprintf("k order %d", n)
		inverted, tokens := j.of(order, fairLock, "inversions"), j.of(order, fairLock, "tokens")
		inverted.value += tokens.value
		inverted.text = fmt.Sprintf("%s inversions, %s tokens that did not grow", number(inverted.value-tokens.value), number(tokens.value))
		j.atMost(6, fmt.Sprintf("FairLock with %d waiting: out of order", n), 0, "", inverted)

		k := fmt.Sprintf("k %d", n)
		j.atLeast(6, "hand-overs a second over 4 processes", 4000, j.of(k, fairLock, "rate"))
		j.atMost(6, "script calls a cycle", 2.2, "", j.of(k, fairLock, "scripts"))
		cost := j.of(k, fairLock, "server_us")
		if cost.ok && (!lowest.ok || cost.value < lowest.value) {
			lowest = cost
		}
		if cost.ok && (!highest.ok || cost.value > highest.value) {
			highest = cost
		}
	}
	within := figure{value: highest.value / lowest.value, ok: lowest.ok}
	within.text = fmt.Sprintf("%s (%s to %s µs)", number(within.value), number(lowest.value), number(highest.value))
	j.atMost(6, "server time a cycle over all these lengths, max/min", 1.5, "", within)
}

func (j *judge) holds() {
	const h = "h holds"
	kept := j.of(h, holdfast, "seconds")
	holds := j.of(h, holdfast, "holds")
	j.atMost(7, fmt.Sprintf("%s holds for %s s: lost", number(holds.value), number(kept.value)), 0, "", j.of(h, holdfast, "lost"))
	j.atMost(7, "client memory a hold", 600, "B", j.of(h, holdfast, "heap_bytes"))
	j.atMost(7, "watchdog goroutines", 1, "", j.of(h, holdfast, "watchdogs"))
	j.atMost(7, "client CPU", 4, "% of a core", j.of(h, holdfast, "client_percent"))
	j.atMost(7, "server CPU", 10, "% of a core", j.of(h, holdfast, "server_percent"))
}

func (j *judge) waiters() {
	const i = "i waiters"
	j.atMost(8, "pub/sub connections", 1, "", j.of(i, holdfast, "subscribers"))
	j.atMost(8, "commands a second and waited name", 1.3, "", j.of(i, holdfast, "commands_per_name"))
	j.atMost(8, "memory of a waiting goroutine beside its stack", 1024, "B", j.of(i, holdfast, "heap_bytes"))
}
