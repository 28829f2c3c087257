package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/fault"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/worker"
)

// soak is several processes that compete for names of every kind and keep others, on a server and a network that fail at
// random, but lose nothing that the server has acknowledged.
type soak struct {
	t       *testing.T
	r       *rand.Rand
	srv     *server.Server
	rdb     *redis.Client
	proxy   *fault.Proxy
	play    soakPlay
	workers []*soakWorker // those that live come first
	gone    []*soakWorker // killed
	rules   []*fault.Rule
	faults  map[string]int
}

type soakWorker struct {
	*worker.Process
	file   string
	frozen int64 // last
	killed int64
}

const soakers = 4

// TestSoak runs for as long as HOLDFAST_SOAK says, and a minute to see that nothing is left. HOLDFAST_SOAK_SEED repeats the
// faults of a run. See make soak.
func TestSoak(t *testing.T) {
	long, err := time.ParseDuration(os.Getenv("HOLDFAST_SOAK"))
	if err != nil {
		t.Skip("set HOLDFAST_SOAK to a duration, 1m for example, to run it")
	}
	seed, err := strconv.ParseUint(os.Getenv("HOLDFAST_SOAK_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("HOLDFAST_SOAK_SEED=%d", seed)
	s := startSoak(t, seed, long)
	for end := time.Now().Add(long); time.Now().Before(end); {
		s.fail()
		time.Sleep(time.Duration(200+s.r.IntN(800)) * time.Millisecond)
	}
	s.proxy.Heal()
	time.Sleep(3 * time.Second)
	s.finish()
	s.check(long)
	s.leavesNothing()
}

func startSoak(t *testing.T, seed uint64, long time.Duration) *soak {
	t.Helper()
	srv := server.Start(t)
	s := &soak{
		t: t, r: rand.New(rand.NewPCG(seed, 0)), srv: srv, faults: make(map[string]int),
		rdb:   srv.Client(func(o *redis.Options) { o.ClientName = "test" }),
		proxy: fault.NewProxy(t, srv.Addr()),
		play:  soakPlay{Names: 4, Goroutines: 50, Kept: 250},
	}
	if long >= 2*time.Minute {
		s.play.Goroutines, s.play.Kept = 2000/soakers, 10_000/soakers
	}
	s.play.Addr = s.proxy.Addr()
	dir := t.TempDir()
	for range soakers {
		s.workers = append(s.workers, s.spawn(dir))
	}
	for _, w := range s.workers {
		if line := nextLine(t, w.Process); line != "ready" {
			t.Fatal(line)
		}
	}
	return s
}

func (s *soak) spawn(dir string) *soakWorker {
	s.t.Helper()
	p := s.play
	p.Process = len(s.workers) + len(s.gone)
	p.File = fmt.Sprintf("%s/%d.events", dir, p.Process)
	args, err := json.Marshal(p)
	if err != nil {
		s.t.Fatal(err)
	}
	return &soakWorker{Process: worker.Spawn(s.t, "soaker", string(args)), file: p.File}
}

// fail makes one thing go wrong.
func (s *soak) fail() {
	few, some := 1+s.r.IntN(5), time.Duration(100+s.r.IntN(400))*time.Millisecond
	kinds := []struct {
		name string
		make func()
	}{
		{"connections cut", s.proxy.Cut},
		{"replies lost", func() { s.rule(s.proxy.DropRepliesAndClose(few, fault.Script())) }},
		{"silent connections", func() { s.rule(s.proxy.DropReplies(few, fault.Script())) }},
		{"late replies", func() { s.rule(s.proxy.DelayReplies(10*few, some, fault.Script())) }},
		{"late requests", func() { s.rule(s.proxy.DelayRequests(10*few, some, fault.Script())) }},
		{"deaf subscribers", func() { s.blackhole(fault.ToClient, fault.Subscribers, 2*some) }},
		{"network away", func() { s.blackhole(fault.Both, fault.Everyone, some) }},
		{"server frozen", func() { s.srv.Pause(); time.Sleep(some); s.srv.Resume() }},
		{"writes paused", func() { s.do("CLIENT", "PAUSE", some.Milliseconds(), "WRITE") }},
		{"scripts flushed", func() { s.do("SCRIPT", "FLUSH") }},
		{"clients killed", func() { s.do("CLIENT", "KILL", "TYPE", "normal") }},
		{"subscribers killed", func() { s.do("CLIENT", "KILL", "TYPE", "pubsub") }},
		{"process frozen", s.freeze},
		{"process killed", s.kill},
	}
	k := kinds[s.r.IntN(len(kinds))]
	s.faults[k.name]++
	k.make()
}

func (s *soak) rule(r *fault.Rule) { s.rules = append(s.rules, r) }

func (s *soak) blackhole(d fault.Direction, match func(fault.ConnInfo) bool, long time.Duration) {
	s.proxy.Blackhole(d, match)
	time.Sleep(long)
	s.proxy.Heal()
}

// do sends a command that may kill its own connection.
func (s *soak) do(args ...any) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.rdb.Do(ctx, args...).Err(); redis.HasErrorPrefix(err, "ERR") {
		s.t.Errorf("%v: %v", args, err)
	}
}

// freeze stops a process for up to two leases.
func (s *soak) freeze() {
	w := s.workers[s.r.IntN(len(s.workers))]
	w.frozen = monotonic()
	w.Stop()
	time.Sleep(time.Duration(s.r.Int64N(int64(2 * soakLease))))
	w.Cont()
}

// kill replaces a process by a new one.
func (s *soak) kill() {
	i := s.r.IntN(len(s.workers))
	w := s.workers[i]
	w.Kill()
	w.killed = monotonic()
	s.gone = append(s.gone, w)
	s.workers = append(s.workers[:i], s.workers[i+1:]...)
	s.workers = append(s.workers, s.spawn(strings.TrimSuffix(w.file, w.file[strings.LastIndexByte(w.file, '/'):])))
}

// finish has the processes end.
func (s *soak) finish() {
	s.t.Helper()
	for _, w := range s.workers {
		_ = w.Stdin.Close()
	}
	late := time.After(soakPatience + time.Minute)
	for _, w := range s.workers {
		select {
		case <-w.Done():
			if err := w.Wait(); err != nil {
				s.t.Errorf("process: %v", err)
			}
		case <-late:
			s.t.Fatal("processes do not end")
		}
	}
}

// check looks at what all processes saw, name by name.
func (s *soak) check(long time.Duration) {
	s.t.Helper()
	names := make(map[string][]event)
	waits := make(map[string]time.Duration) // the longest of each kind
	holds, lost := 0, 0
	for _, w := range append(s.workers, s.gone...) {
		events, err := soakEvents(w.file, w.killed > 0)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, e := range events {
			e = w.ended(e)
			holds++
			if e.Lost > 0 {
				lost++
				e.ServerKeeps = min(e.ServerKeeps, e.Deadline) // it is given back
			}
			waits[soakKinds[e.Kind]] = max(waits[soakKinds[e.Kind]], time.Duration(e.Returned-e.Called).Round(time.Millisecond))
			name := fmt.Sprint(soakKinds[e.Kind], " ", e.Number)
			names[name] = append(names[name], e.event)
		}
	}
	for name, events := range names {
		kind, _, _ := strings.Cut(name, " ")
		err := errors.Join(checkTokens(events), checkPermits(events, capacityOf(kind)))
		if capacityOf(kind) == 1 {
			err = errors.Join(err, checkExclusion(events))
		}
		if err != nil {
			s.t.Errorf("%s: %v", name, err)
		}
	}
	hit := 0
	for _, r := range s.rules {
		hit += r.Answered()
	}
	s.t.Logf("%d holds of %d names, %d not given back; %d processes killed; %d requests hit; faults: %v; longest waits: %v", holds, len(names), lost, len(s.gone), hit, s.faults, waits)
	if rate := float64(holds) / long.Seconds(); rate < 20 || len(names) < len(soakKinds)*s.play.Names || hit == 0 {
		s.t.Errorf("%.0f holds a second: this proves nothing", rate)
	}
}

// ended gives an event an end that has none since its process was killed: it believed until then, or until it was frozen.
func (w *soakWorker) ended(e soakEvent) soakEvent {
	if e.Released > 0 || e.Lost > 0 {
		return e
	}
	e.Lost = w.killed
	if w.frozen > e.Called {
		e.Lost = w.frozen
	}
	e.Deadline = max(e.Deadline, e.Lost) // it may have been renewed since
	return e
}

// leavesNothing waits until killed processes and lost requests have run out.
func (s *soak) leavesNothing() {
	s.t.Helper()
	expires(s.t, s.rdb)
	began := time.Now()
	eventually(s.t, time.Minute, "no key is left", func() bool {
		n, err := s.rdb.DBSize(context.Background()).Result()
		return err == nil && n == 0
	})
	eventually(s.t, 10*time.Second, "no connection is left", func() bool {
		list, err := s.rdb.ClientList(context.Background()).Result()
		return err == nil && strings.Count(list, "\n") == strings.Count(list, " name=test ")
	})
	channels, err := s.rdb.PubSubChannels(context.Background(), holdfast.DefaultPrefix+"*").Result()
	if err != nil || len(channels) > 0 {
		s.t.Errorf("left: %v, %v", channels, err)
	}
	s.t.Logf("nothing is left after %v", time.Since(began).Round(time.Second))
}
