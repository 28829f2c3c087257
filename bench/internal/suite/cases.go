package suite

import (
	"fmt"
	"slices"
	"time"
)

// loadCase is a scenario of goroutines that lock and unlock.
type loadCase struct {
	name       string
	goroutines []int // of each process
	contenders []string
	ownKeys    bool
	work       time.Duration
	readers    float64 // part of the cycles that only read; negative: not a read-write lock
	capacity   int     // of a semaphore; 0: not one
}

var (
	peers  = []string{"redsync", "redislock", "rueidislock"}
	mutual = slices.Concat([]string{"holdfast"}, peers, []string{"raw"}) // excludes each other over processes
	ideal  = append(slices.Clone(mutual), "sync.Mutex")
)

// work is what holds do in the cases that have them do something.
const work = 2 * time.Millisecond

func loadCases(quick bool) []loadCase {
	var cases []loadCase
	add := func(c loadCase) { cases = append(cases, c) }
	for _, n := range []int{16, 64, 256} {
		add(loadCase{name: fmt.Sprintf("b %d", n), goroutines: []int{n}, ownKeys: true, readers: -1,
			contenders: append(slices.Clone(mutual), "bare")})
	}
	for _, n := range []int{16, 256} {
		add(loadCase{name: fmt.Sprintf("c %d", n), goroutines: []int{n}, readers: -1, contenders: ideal})
		add(loadCase{name: fmt.Sprintf("e c %d", n), goroutines: []int{n}, readers: -1, contenders: ideal, work: work})
	}
	for _, n := range []int{4, 16} {
		four := slices.Repeat([]int{4}, n)
		add(loadCase{name: fmt.Sprintf("d %dx4", n), goroutines: four, readers: -1, contenders: mutual})
		add(loadCase{name: fmt.Sprintf("e d %dx4", n), goroutines: four, readers: -1, contenders: ideal, work: work})
	}
	add(loadCase{name: hogs, goroutines: []int{16, 1}, readers: -1, contenders: mutual})
	cases = append(cases, sharedCases()...)
	cases = append(cases, queueCases()...)
	if quick {
		cases = slices.DeleteFunc(cases, func(c loadCase) bool { return !slices.Contains(quickCases, c.name) })
		for i := range cases[1:] { // all contenders in the first case are enough
			cases[1+i].contenders = slices.DeleteFunc(slices.Clone(cases[1+i].contenders), func(name string) bool {
				return name == "redsync" || name == "redislock" || name == "raw"
			})
		}
	}
	return cases
}

// hogs is where one goroutine has a process of its own against another process's sixteen.
const hogs = "d 16 against 1"

// quickCases leave out what takes long or many processes.
var quickCases = []string{"b 16", "c 16", "d 4x4", hogs, "e c 16", "f 4x4 90 %", "g 64", "k 1", "k 10"}

// sharedCases are those in which more than one may hold at a time.
func sharedCases() []loadCase {
	var cases []loadCase
	four := slices.Repeat([]int{4}, 4)
	rw := []string{"holdfast RWLock", "holdfast", "sync.RWMutex"}
	for _, percent := range []int{90, 99} {
		readers := float64(percent) / 100
		cases = append(cases,
			loadCase{name: fmt.Sprintf("f 1x16 %d %%", percent), goroutines: []int{16}, readers: readers, contenders: rw},
			loadCase{name: fmt.Sprintf("f 4x4 %d %%", percent), goroutines: four, readers: readers, contenders: rw},
			loadCase{name: fmt.Sprintf("f 4x4 %d %% 2 ms", percent), goroutines: four, readers: readers, contenders: rw, work: work})
	}
	sem := []string{"holdfast Semaphore", "x/sync semaphore"}
	sixteens := slices.Repeat([]int{16}, 4)
	return append(cases,
		loadCase{name: "g 64", goroutines: []int{64}, readers: -1, capacity: 8, contenders: sem},
		loadCase{name: "g 4x16", goroutines: sixteens, readers: -1, capacity: 8, contenders: sem},
		loadCase{name: "g 4x16 2 ms", goroutines: sixteens, readers: -1, capacity: 8, contenders: sem, work: work})
}

// queueLengths are how many wait in mode k, beside the one that holds.
var queueLengths = []int{1, 10, 100, 1_000, 10_000}

const queueProcesses = 4

func queueCases() []loadCase {
	var cases []loadCase
	for _, n := range queueLengths {
		processes := min(queueProcesses, n+1)
		goroutines := make([]int, processes)
		for i := range n + 1 {
			goroutines[i%processes]++
		}
		cases = append(cases, loadCase{name: fmt.Sprintf("k %d", n), goroutines: goroutines, readers: -1,
			contenders: []string{"holdfast FairLock", "holdfast"}})
	}
	return cases
}

// total returns how many goroutines a case has.
func (c *loadCase) total() int {
	n := 0
	for _, g := range c.goroutines {
		n += g
	}
	return n
}

// crowd is from how many goroutines on slices are longer, so that each has its turn; if they work inside, it is
// from a tenth on.
const crowd = 1000

// length returns how long to measure.
func (c *loadCase) length(slice time.Duration) time.Duration {
	if c.total() > crowd || c.work > 0 && c.total() > crowd/10 {
		return 3 * slice
	}
	return slice
}

// warmUp returns how long the case runs before it is measured: scripts are loaded, connections made, and the
// queue must have its length, and has been served once if the holds work.
func (c *loadCase) warmUp(slice time.Duration) time.Duration {
	perGoroutine := 400*time.Microsecond + c.work
	return min(max(slice/4, 150*time.Millisecond), 300*time.Millisecond) + time.Duration(c.total())*perGoroutine
}
