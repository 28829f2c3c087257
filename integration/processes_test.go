package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/worker"
)

func init() { worker.Register("counter", count) }

// sighting is one hold as its process saw it. The times are monotonic's.
type sighting struct {
	Process, Goroutine int
	Value              int // that the holder wrote; 0: there was nothing left to do
	Token              int64
	Called, Held       int64 // Lock was called, and returned
	Left, Freed        int64 // Release was called, and returned
	Deadline           int64 // of the hold when Release was called
}

// monotonic reads CLOCK_MONOTONIC, which all processes of a machine share.
func monotonic() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err)
	}
	return now.Nano()
}

// workerClient is newClient for a worker, which has no testing.TB. The worker closes what it gets.
func workerClient(o *redis.Options, options ...holdfast.Option) (*holdfast.Client, *redis.Client, error) {
	rdb := redis.NewClient(o)
	quiet := holdfast.Logger(slog.New(slog.DiscardHandler))
	client, err := holdfast.New(rdb, append([]holdfast.Option{quiet}, options...)...)
	return client, rdb, err
}

// closeWorker closes a worker's client, which waits for whatever it still does in the background.
func closeWorker(client *holdfast.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return client.Close(ctx)
}

// counting is what all goroutines of a counter process share.
type counting struct {
	process int
	rdb     *redis.Client
	mutex   *holdfast.Mutex
	key     string // of the counter
	goal    int

	mu   sync.Mutex // guards seen
	seen []sighting
}

// count is the worker: its goroutines count a key up to the goal, each step under the mutex, and print every
// hold they had. Arguments: address, name, key, goal, goroutines, number of the process.
func count(args []string) error {
	client, rdb, err := workerClient(&redis.Options{Addr: args[0], PoolSize: 20})
	if err != nil {
		return err
	}
	goal, err1 := strconv.Atoi(args[3])
	goroutines, err2 := strconv.Atoi(args[4])
	process, err3 := strconv.Atoi(args[5])
	if err := firstError(err1, err2, err3, rdb.Ping(context.Background()).Err()); err != nil {
		return err
	}
	c := &counting{process: process, rdb: rdb, mutex: client.Mutex(args[1]), key: args[2], goal: goal}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil { // all begin at once
		return err
	}
	errs := make([]error, goroutines)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() { errs[g] = c.work(g) })
	}
	wg.Wait()
	if err := firstError(append(errs, closeWorker(client))...); err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	for _, s := range c.seen {
		if err := json.NewEncoder(out).Encode(s); err != nil {
			return err
		}
	}
	return out.Flush()
}

// firstError returns the first error there is.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *counting) work(goroutine int) error {
	for {
		s, err := c.cycle(goroutine)
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.seen = append(c.seen, s)
		c.mu.Unlock()
		if s.Value == 0 {
			return nil
		}
	}
}

// cycle is one hold. GET and SET instead of INCR: two that were inside at once would lose an update.
func (c *counting) cycle(goroutine int) (sighting, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s := sighting{Process: c.process, Goroutine: goroutine, Called: monotonic()}
	held, err := c.mutex.Lock(ctx)
	if err != nil {
		return s, err
	}
	s.Held, s.Token = monotonic(), held.Token()
	n, err := c.rdb.Get(ctx, c.key).Int()
	if errors.Is(err, redis.Nil) {
		n, err = 0, nil
	}
	if err == nil && n < c.goal {
		s.Value = n + 1
		err = c.rdb.Set(ctx, c.key, s.Value, 0).Err()
	}
	s.Deadline = monotonic() + time.Until(held.Deadline()).Nanoseconds()
	s.Left = monotonic()
	err = firstError(err, held.Release(ctx))
	s.Freed = monotonic()
	return s, err
}

// Four processes of eight goroutines count to ten thousand: nothing is lost, nobody starves, tokens are in order,
// and a hand-over costs what an uncontended cycle does.
func TestProcessesCountUnderAMutexWithoutLosingAnUpdate(t *testing.T) {
	const processes, goroutines, goal = 4, 8, 10_000
	srv := server.Start(t)
	rdb := srv.Client()
	name := unique(t)
	key := name + ".counter"
	ps := make([]*worker.Process, processes)
	for i := range ps {
		ps[i] = worker.Spawn(t, "counter", srv.Addr(), name, key, strconv.Itoa(goal), strconv.Itoa(goroutines), strconv.Itoa(i))
	}
	for _, p := range ps {
		if line := nextLine(t, p); line != "ready" {
			t.Fatal(line)
		}
	}
	before := scriptsRun(t, rdb)
	began := time.Now()
	for _, p := range ps {
		_, _ = fmt.Fprintln(p.Stdin, "go")
	}
	var seen []sighting
	for _, p := range ps {
		seen = append(seen, sightings(t, p)...)
	}
	calls := scriptsRun(t, rdb) - before
	t.Logf("%d holds in %v, %.2f script calls each", len(seen), time.Since(began).Round(time.Millisecond), float64(calls)/float64(len(seen)))

	if n, err := rdb.Get(t.Context(), key).Int(); err != nil || n != goal {
		t.Errorf("the counter is at %d (%v) instead of %d", n, err, goal)
	}
	if float64(calls) > 2.2*float64(len(seen)) {
		t.Errorf("%d script calls for %d holds", calls, len(seen))
	}
	checkShares(t, seen, processes, goroutines)
	checkTokenOrder(t, seen)
	fades(t, rdb, "holdfast:mutex:"+name)
}

// sightings reads what a counter process saw.
func sightings(t *testing.T, p *worker.Process) []sighting {
	t.Helper()
	var seen []sighting
	for line := range p.Lines() {
		var s sighting
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		seen = append(seen, s)
	}
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	return seen
}

// checkShares makes sure that every goroutine counted, and that the processes really competed.
func checkShares(t *testing.T, seen []sighting, processes, goroutines int) {
	t.Helper()
	shares := make(map[[2]int]int)
	for _, s := range seen {
		if s.Value > 0 {
			shares[[2]int{s.Process, s.Goroutine}]++
		}
	}
	counts := make([]int, 0, processes*goroutines)
	for _, n := range shares {
		counts = append(counts, n)
	}
	slices.Sort(counts)
	if len(counts) != processes*goroutines {
		t.Errorf("only %d of %d goroutines were served: %v", len(counts), processes*goroutines, counts)
	}
	slices.SortFunc(seen, byToken)
	handovers := 0
	for i := 1; i < len(seen); i++ {
		if seen[i].Process != seen[i-1].Process {
			handovers++
		}
	}
	t.Logf("cycles per goroutine %v, %d hand-overs between processes", counts, handovers)
	if handovers < 100 {
		t.Errorf("%d hand-overs between processes: this proves nothing", handovers)
	}
}

func byToken(a, b sighting) int {
	switch {
	case a.Token < b.Token:
		return -1
	case a.Token > b.Token:
		return 1
	}
	return 0
}

// checkTokenOrder is exact for a mutex: tokens are the order in which the server granted, so each belief must
// begin after the one before ended, and the counter must have grown in that order.
func checkTokenOrder(t *testing.T, seen []sighting) {
	t.Helper()
	slices.SortFunc(seen, byToken)
	value := 0
	for i, s := range seen {
		if s.Value > 0 {
			if value++; s.Value != value {
				t.Fatalf("hold %d wrote %d, expected %d: %+v", i, s.Value, value, s)
			}
		}
		if i == 0 {
			continue
		}
		switch before := seen[i-1]; {
		case s.Token == before.Token:
			t.Fatalf("one token twice: %+v and %+v", before, s)
		case s.Held < min(before.Left, before.Deadline):
			t.Fatalf("two believed to hold at once: %+v and %+v", before, s)
		}
	}
}

// scriptsRun reads how many script calls the server has run so far.
func scriptsRun(t *testing.T, rdb *redis.Client) int {
	t.Helper()
	info, err := rdb.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for line := range strings.Lines(info) {
		for _, command := range []string{"eval", "evalsha"} {
			if rest, ok := strings.CutPrefix(line, "cmdstat_"+command+":calls="); ok {
				n, _, _ := strings.Cut(rest, ",")
				calls, err := strconv.Atoi(n)
				if err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				total += calls
			}
		}
	}
	return total
}

// nextLine waits for a line from a worker.
func nextLine(t *testing.T, p *worker.Process) string {
	t.Helper()
	select {
	case line, ok := <-p.Lines():
		if !ok {
			t.Fatalf("the worker ended: %v", p.Wait())
		}
		return line
	case <-time.After(30 * time.Second):
		t.Fatal("no line from the worker within 30 s")
	}
	return ""
}
