package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/holdfast-go/holdfast/integration/fault"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/worker"
)

// What several processes see of one name, while the network loses, delays and repeats and one of them is frozen beyond its
// lease, is what a lock could have shown them one operation at a time.

// A recording is the history of one name, and how it came about.
type recording struct {
	kind   string
	events []event
	faults int // replies lost and requests delayed
}

// historyLease is long enough for a machine that is busy, and short enough for a test.
const historyLease = time.Second

func TestHistoryOfAFrozenHolderIsLinearizable(t *testing.T) {
	for _, kind := range []string{"mutex", "fair", "rw", "sem"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := record(t, play{
				Kind: kind, Goroutines: 3, For: 5 * time.Second, Cancels: 12,
				Hold: 20 * time.Millisecond, Think: 40 * time.Millisecond,
			}, true, 1)
			r.requireTraffic(t, 100, 3)
			if lost := r.count(func(e event) bool { return e.Lost > 0 }); lost == 0 {
				t.Error("nobody lost a hold")
			}
			if n := r.count(func(e event) bool { return e.Outcome == unknown }); n < 3 {
				t.Errorf("only %d waits were given up", n)
			}
			r.require(t)
		})
	}
}

// Without a freeze and without waits given up, whoever is refused was refused because another held: every hold is known.
func TestHistoryOfRefusalsIsLinearizable(t *testing.T) {
	for _, kind := range []string{"mutex", "fair"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := record(t, play{
				Kind: kind, Goroutines: 3, For: 3 * time.Second, Tries: 2,
				Hold: 10 * time.Millisecond, Think: 40 * time.Millisecond,
			}, false, 1)
			r.requireTraffic(t, 100, 3)
			if n := r.count(func(e event) bool { return e.Outcome == busy }); n < 30 {
				t.Errorf("only %d were refused", n)
			}
			r.require(t)
		})
	}
}

// Too many for porcupine.
func TestLongHistoryKeepsTokensAndPermitsInOrder(t *testing.T) {
	for _, kind := range []string{"mutex", "rw", "sem"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			rarely := int64(10)
			if kind == "mutex" {
				rarely = 1 // it is mostly passed on, and few requests are sent
			}
			r := record(t, play{Kind: kind, Goroutines: 8, For: 5 * time.Second, Cancels: 200}, true, rarely)
			r.requireTraffic(t, 500, 5)
			r.check(t)
		})
	}
}

// record has three processes compete for one name, through a proxy that makes the network fail, more rarely if that is more
// than 1.
func record(t *testing.T, p play, freeze bool, rarely int64) recording {
	t.Helper()
	srv := server.Shared(t)
	proxy := fault.NewProxy(t, srv.Addr())
	p.Addr, p.Name, p.Lease, p.ConnectionsAtATime = proxy.Addr(), unique(t), historyLease, 20
	processes, dir := make([]*worker.Process, 3), t.TempDir()
	for i := range processes {
		p.Process, p.File = i, fmt.Sprintf("%s/%d.json", dir, i)
		args, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		processes[i] = worker.Spawn(t, "historian", string(args))
	}
	for _, w := range processes {
		if line := nextLine(t, w); line != "ready" {
			t.Fatal(line)
		}
	}
	rules := disturb(proxy, rarely)
	for _, w := range processes {
		_, _ = fmt.Fprintln(w.Stdin, "go")
	}
	r := recording{kind: p.Kind}
	var frozen [2]int64
	if freeze {
		time.Sleep(p.For / 5)
		frozen = freezeHolder(t, processes[0])
	}
	for i, w := range processes {
		if err := w.Wait(); err != nil {
			t.Fatal(err)
		}
		events, err := eventsIn(fmt.Sprintf("%s/%d.json", dir, i))
		if err != nil {
			t.Fatal(err)
		}
		r.events = append(r.events, events...)
	}
	for _, rule := range rules {
		r.faults += rule.Answered()
	}
	for i := range r.events {
		r.events[i].ServerKeeps = serverKeeps(r.events[i], frozen)
	}
	return r
}

// disturb has the proxy lose and delay some of what passes.
func disturb(proxy *fault.Proxy, rarely int64) []*fault.Rule {
	oneOf := func(n int64) fault.Match {
		n *= rarely
		var seen atomic.Int64
		return fault.All(fault.Script(), func([]string) bool { return seen.Add(1)%n == n/2 })
	}
	return []*fault.Rule{
		proxy.DropRepliesAndClose(30, oneOf(60)),
		proxy.DropReplies(3, oneOf(110)), // the connection stays, and stays silent
		proxy.DelayReplies(30, 60*time.Millisecond, oneOf(70)),
		proxy.DelayRequests(20, 300*time.Millisecond, oneOf(90)),
	}
}

// freezeHolder freezes a process while it holds, for more than its lease. It returns between which times it certainly stood.
func freezeHolder(t *testing.T, w *worker.Process) (frozen [2]int64) {
	t.Helper()
	_, _ = fmt.Fprintln(w.Stdin, "freeze")
	if line := nextLine(t, w); line != "holding" {
		t.Fatal(line)
	}
	w.Stop()
	eventually(t, 5*time.Second, "the process stands", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.Pid()))
		return err != nil || strings.Contains(string(stat), ") T ")
	})
	frozen[0] = monotonic()
	time.Sleep(2 * historyLease)
	frozen[1] = monotonic()
	w.Cont()
	return frozen
}

// serverKeeps is the earliest time at which the server can have ended an event's hold by itself. Who loses a hold gives
// it back, at its deadline, unless its process, the first one, stood still then.
func serverKeeps(e event, frozen [2]int64) int64 {
	if e.Lost == 0 {
		return e.ServerKeeps
	}
	if e.Process == 0 && frozen[0] < e.Deadline {
		return min(e.ServerKeeps, max(e.Deadline, frozen[1]))
	}
	return e.Deadline
}

func (r recording) count(is func(event) bool) (n int) {
	for _, e := range r.events {
		if is(e) {
			n++
		}
	}
	return n
}

// requireTraffic fails the test if so little happened that it proves nothing.
func (r recording) requireTraffic(t *testing.T, holds, faults int) {
	t.Helper()
	granted := byGrant(r.events)
	handovers, contended := 0, 0
	for i, e := range granted[min(1, len(granted)):] {
		before := granted[i]
		if before.Process != e.Process {
			handovers++
		}
		if e.Called < before.believed() {
			contended++
		}
	}
	t.Logf("%d calls, %d holds, %d of them contended, %d hand-overs between processes, %d faults",
		len(r.events), len(granted), contended, handovers, r.faults)
	if len(granted) < holds || contended < holds/3 || handovers < holds/10 || r.faults < faults {
		t.Error("too little happened: this proves nothing")
	}
}

// check runs the checkers that end soon at any length.
func (r recording) check(t *testing.T) {
	t.Helper()
	capacity := capacityOf(r.kind)
	err := errors.Join(checkTokens(r.events), checkPermits(r.events, capacity), checkServer(r.events, capacity))
	if capacity == 1 {
		err = errors.Join(err, checkExclusion(r.events))
	}
	if err != nil {
		t.Error(err)
	}
}

// require runs all checkers, and makes sure that this history spoiled would not pass.
func (r recording) require(t *testing.T) {
	t.Helper()
	r.check(t)
	began := time.Now()
	ops := operations(r.events)
	model := lockModel(capacityOf(r.kind))
	result, info := porcupine.CheckOperationsVerbose(model, ops, 20*time.Second)
	t.Logf("porcupine: %v, %d operations in %v", result, len(ops), time.Since(began).Round(time.Millisecond))
	if result == porcupine.Ok {
		if spoiled := requireRejects(t, r.events, capacityOf(r.kind)); len(spoiled) < 3 {
			t.Errorf("only these faults had a place: %v", spoiled)
		}
		return
	}
	path := fmt.Sprintf("%s/%s.html", os.TempDir(), unique(t))
	t.Errorf("not linearizable: %v; see %s (%v)", result, path, porcupine.VisualizePath(model, info, path))
}
