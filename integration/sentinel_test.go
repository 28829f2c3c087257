package integration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/topology"
)

// recovered is how long after a new master accepts writes everybody must make progress: a poll, and a good second for
// the client to be told and to connect.
const recovered = 2500 * time.Millisecond

// rally is a ball game: players take one lock in turns until it is stopped.
type rally struct {
	players int
	stop    context.CancelFunc
	wg      sync.WaitGroup

	mu    sync.Mutex // guards seen, which the players write
	seen  []sighting
	fails []failing
}

// failing is a call that returned an error.
type failing struct {
	sighting
	err error
}

// rallyOf starts a rally: each lock is that of another client, and has as many players as told.
func rallyOf(each int, acquire ...func(context.Context) (*holdfast.Hold, error)) *rally {
	ctx, cancel := context.WithCancel(context.Background())
	r := &rally{players: each * len(acquire), stop: cancel}
	for p, a := range acquire {
		for g := range each {
			r.wg.Go(func() {
				for ctx.Err() == nil {
					r.turn(sighting{Process: p, Goroutine: g}, a)
				}
			})
		}
	}
	return r
}

// turn is one hold of a player. What it does meanwhile takes a millisecond.
func (r *rally) turn(s sighting, acquire func(context.Context) (*holdfast.Hold, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	s.Called = monotonic()
	h, err := acquire(ctx)
	if err == nil {
		s.Held, s.Token = monotonic(), h.Token()
		time.Sleep(time.Millisecond)
		s.Deadline = monotonic() + time.Until(h.Deadline()).Nanoseconds()
		s.Left = monotonic()
		if !h.Valid() {
			s.Deadline = min(s.Deadline, s.Left) // it knows
		}
		err = h.Release(context.Background())
		s.Freed = monotonic()
	}
	r.mu.Lock()
	if s.Held > 0 {
		r.seen = append(r.seen, s)
	}
	if err != nil {
		r.fails = append(r.fails, failing{s, err})
	}
	r.mu.Unlock()
	time.Sleep(time.Millisecond)
}

// over stops the rally and waits for the players.
func (r *rally) over() {
	r.stop()
	r.wg.Wait()
}

// holds returns how many there have been so far.
func (r *rally) holds() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen)
}

// mono is the instant in monotonic's time.
func mono(at time.Time) int64 { return monotonic() - time.Since(at).Nanoseconds() }

// recovery returns how long after the instant it was until every player had been given a hold.
func (r *rally) recovery(t *testing.T, after int64) (all time.Duration) {
	t.Helper()
	first := make(map[[2]int]int64)
	for _, s := range r.seen {
		id := [2]int{s.Process, s.Goroutine}
		if old, ok := first[id]; s.Held > after && (!ok || s.Held < old) {
			first[id] = s.Held
		}
	}
	if len(first) < r.players {
		t.Errorf("only %d of %d players ever held again", len(first), r.players)
	}
	for _, at := range first {
		all = max(all, time.Duration(at-after))
	}
	return all
}

// pause returns the longest time between two grants.
func (r *rally) pause() (longest time.Duration) {
	slices.SortFunc(r.seen, func(a, b sighting) int { return cmp.Compare(a.Held, b.Held) })
	for i := 1; i < len(r.seen); i++ {
		longest = max(longest, time.Duration(r.seen[i].Held-r.seen[i-1].Held))
	}
	return longest
}

// checkTokens makes sure that who asked after another one had been granted has the greater token.
func (r *rally) checkTokens(t *testing.T) {
	t.Helper()
	granted := slices.Clone(r.seen)
	slices.SortFunc(granted, func(a, b sighting) int { return cmp.Compare(a.Held, b.Held) })
	asked := slices.Clone(r.seen)
	slices.SortFunc(asked, func(a, b sighting) int { return cmp.Compare(a.Called, b.Called) })
	var top sighting
	for _, s := range asked {
		for len(granted) > 0 && granted[0].Held < s.Called {
			if granted[0].Token > top.Token {
				top = granted[0]
			}
			granted = granted[1:]
		}
		if s.Token <= top.Token {
			t.Fatalf("token %d was given to %+v after token %d to %+v", s.Token, s, top.Token, top)
		}
	}
}

// checkOverlaps makes sure that no two believed to hold at once, but for pairs that are excused.
func (r *rally) checkOverlaps(t *testing.T, excused func(earlier, later sighting) bool) (overlaps int) {
	t.Helper()
	slices.SortFunc(r.seen, func(a, b sighting) int { return cmp.Compare(a.Held, b.Held) })
	for i, a := range r.seen {
		for _, b := range r.seen[i+1:] {
			if b.Held >= min(a.Left, a.Deadline) {
				break
			}
			if !excused(a, b) {
				t.Fatalf("two believed to hold at once: %+v and %+v", a, b)
			}
			overlaps++
		}
	}
	return overlaps
}

// checkFails makes sure that only releases failed, with one of the errors, and only of holds that saw the time between
// the two instants.
func (r *rally) checkFails(t *testing.T, from, to int64, allowed ...error) {
	t.Helper()
	for _, f := range r.fails {
		switch {
		case f.Held == 0:
			t.Errorf("acquire failed: %+v: %v", f.sighting, f.err)
		case !slices.ContainsFunc(allowed, func(e error) bool { return errors.Is(f.err, e) }):
			t.Errorf("release failed: %+v: %v", f.sighting, f.err)
		case f.Freed < from || f.Held > to:
			t.Errorf("release failed %v before or %v after the trouble: %v", time.Duration(from-f.Freed), time.Duration(f.Held-to), f.err)
		}
	}
}

// switches are the two ways in which Sentinel replaces a master.
var switches = []struct {
	name string
	make func(*topology.Sentinel) topology.Switch
}{
	{"failover is ordered", (*topology.Sentinel).Failover},
	{"master is killed", (*topology.Sentinel).KillMaster},
}

// Two clients with two goroutines each take a lock in turns while another node becomes the master. Where the old one is
// alive it goes on granting until the clients are told, and all that is lost: then two may hold at once, one from
// each master. Nothing else may overlap.
func TestSentinelPlayersGoOnWhenTheMasterChanges(t *testing.T) {
	for _, how := range switches {
		t.Run(how.name, func(t *testing.T) {
			const lease = 3 * time.Second
			s, name := topology.StartSentinel(t), unique(t)
			var acquire []func(context.Context) (*holdfast.Hold, error)
			for range 2 {
				acquire = append(acquire, newClient(t, s.Client()).Mutex(name, holdfast.Lease(lease)).Lock)
			}
			r := rallyOf(2, acquire...)
			defer r.over()
			eventually(t, 10*time.Second, "the game is on", func() bool { return r.holds() > 200 })
			change := how.make(s)
			serving := change.Writable
			if change.From.Alive() {
				serving = change.Known // until then the old master serves
			}
			before := r.holds()
			time.Sleep(recovered + time.Second) // the game goes on, long enough to see who does not
			after := r.holds()
			r.over()
			took := r.recovery(t, mono(serving))
			t.Logf("%v; all players hold again after %v; longest pause %v; %d holds before, %d after",
				change, took.Round(time.Millisecond), r.pause().Round(time.Millisecond), before, after-before)
			if took > recovered {
				t.Errorf("it took %v until all players held again", took)
			}
			r.checkTokens(t)
			// By then all clients know: the sentinel that leads tells its own only when the replicas follow, a second later.
			from, to := mono(change.Began), mono(change.Known.Add(2*time.Second))
			n := r.checkOverlaps(t, func(a, b sighting) bool {
				granted := a.Held <= to && b.Held >= mono(change.Writable)
				return granted && time.Duration(min(a.Left, a.Deadline)-b.Held) < lease/3+500*time.Millisecond
			})
			t.Logf("%d overlaps, %d releases failed", n, len(r.fails))
			r.checkFails(t, from, to, holdfast.ErrLost, holdfast.ErrUnavailable)
		})
	}
}

// sentry is a hold of one kind, and somebody who waits for it with another client.
type sentry struct {
	kind    string
	hold    *holdfast.Hold
	waiter  <-chan result
	inspect func(context.Context) (holdfast.State, error)
}

// kindsOfHold are those of which a second one must wait.
var kindsOfHold = []string{"mutex", "fair", "write", "sem1"}

// post takes a hold of every kind with one client and has the other wait for it.
func post(t *testing.T, holding, waiting *holdfast.Client, name string, lease time.Duration) []*sentry {
	t.Helper()
	var ks []*sentry
	for _, kind := range kindsOfHold {
		k := &sentry{kind: kind, inspect: inspectorOf(holding, kind, name)}
		k.hold = take(t, acquirer(holding, kind, name, holdfast.Lease(lease)))
		ch := make(chan result, 1)
		wait := acquirer(waiting, kind, name, holdfast.Lease(lease))
		ctx := within(t, time.Minute)
		go func() {
			h, err := wait(ctx)
			ch <- result{h, err}
		}()
		k.waiter = ch
		inQueue(t, 1, k.inspect)
		ks = append(ks, k)
	}
	return ks
}

// inspectorOf is the method that tells who has a kind's name.
func inspectorOf(client *holdfast.Client, kind, name string) func(context.Context) (holdfast.State, error) {
	switch kind {
	case "mutex":
		return client.Mutex(name).Inspect
	case "fair":
		return client.FairLock(name).Inspect
	case "read", "write":
		return client.RWLock(name).Inspect
	}
	return func(ctx context.Context) (holdfast.State, error) {
		usage, err := client.Semaphore(name, 1).Inspect(ctx)
		return usage.State, err
	}
}

// still makes sure that the hold lasts, at the server too, and that its waiter waits.
func (k *sentry) still(t *testing.T) {
	t.Helper()
	if !k.hold.Valid() {
		t.Errorf("%s: lost: %v", k.kind, k.hold.Err())
	}
	state, err := k.inspect(within(t, 5*time.Second))
	if err != nil || len(state.Holders) != 1 || state.Holders[0].Token != k.hold.Token() {
		t.Errorf("%s: the server knows %+v, %v", k.kind, state, err)
	}
	select {
	case r := <-k.waiter:
		t.Errorf("%s: a waiter got in beside the holder: %v, %v", k.kind, r.hold, r.err)
	default:
	}
}

// pass releases the hold and makes sure that the waiter gets it within the time. It returns how long that took.
func (k *sentry) pass(t *testing.T, limit time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	put(t, k.hold)
	h := served(t, limit, k.waiter)
	took := time.Since(began)
	if h.Token() <= k.hold.Token() {
		t.Errorf("%s: token %d after %d", k.kind, h.Token(), k.hold.Token())
	}
	put(t, h)
	return took
}

// A hold that the replicas know outlasts the change of masters, and who waited before gets it afterwards.
func TestSentinelReplicatedHoldsAndTheirWaitersOutlastTheMaster(t *testing.T) {
	for _, how := range switches {
		t.Run(how.name, func(t *testing.T) {
			const lease = 9 * time.Second
			s, name := topology.StartSentinel(t), unique(t)
			ks := post(t, newClient(t, s.Client()), newClient(t, s.Client()), name, lease)
			for _, n := range s.Replicas() {
				replicatedTo(t, s.Master().Client(), n.Client())
			}
			change := how.make(s)
			t.Log(change)
			until := change.Known.Add(lease/3 + 500*time.Millisecond) // by then every hold was renewed
			for time.Now().Before(until) {
				for _, k := range ks {
					k.still(t)
				}
				if t.Failed() {
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
			for _, k := range ks {
				if left := time.Until(k.hold.Deadline()); left < lease/2 {
					t.Errorf("%s: not renewed, %v are left", k.kind, left)
				}
				t.Logf("%s: passed on in %v", k.kind, k.pass(t, recovered).Round(time.Millisecond))
			}
		})
	}
}

// replicatedTo waits until a replica has read all that its master has written.
func replicatedTo(t *testing.T, master, replica *redis.Client) {
	t.Helper()
	const mark = "test:mark"
	value := time.Now().String()
	if err := master.Set(t.Context(), mark, value, time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "the replica is in step", func() bool {
		return rawGet(t, replica, mark) == value
	})
}

// rawGet reads a key of the very node, which may be a replica in a cluster.
func rawGet(t *testing.T, rdb *redis.Client, key string) string {
	v, err := rdb.Get(t.Context(), key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	return v
}

// A hold that no replica has heard of is gone with its master. Its holder is told by its next renewal, long before its
// deadline, and whoever got the name from the new master has the greater token.
func TestSentinelHoldThatWasNotReplicatedIsToldOfItsLoss(t *testing.T) {
	const lease = 12 * time.Second
	s, name := topology.StartSentinel(t), unique(t)
	holder, rival := newClient(t, s.Client()), newClient(t, s.Client())
	put(t, take(t, holder.Mutex(name+".other").Lock)) // is connected
	put(t, take(t, rival.Mutex(name+".other").Lock))

	replicas := s.Replicas()
	master := s.Master().Client()
	for _, n := range replicas {
		n.Pause()
	}
	// Or the stream would wait for the replicas in their sockets.
	if err := master.Do(t.Context(), "CLIENT", "KILL", "TYPE", "replica").Err(); err != nil {
		t.Fatal(err)
	}
	held := take(t, holder.Mutex(name, holdfast.Lease(lease)).Lock)
	doomed := s.Master()
	doomed.Kill()
	for _, n := range replicas {
		n.Resume()
	}
	change := s.Await(doomed)
	t.Log(change)
	stolen := make(chan result, 1)
	go func() {
		h, err := rival.Mutex(name).Lock(within(t, 10*time.Second))
		stolen <- result{h, err}
	}()
	const bound = lease/3 + 500*time.Millisecond
	select {
	case <-held.Done():
		took := time.Since(change.Known)
		t.Logf("told %v after the new master was known, %v before the deadline: %v", took.Round(time.Millisecond),
			time.Until(held.Deadline()).Round(time.Millisecond), held.Err())
		if took > bound || !errors.Is(held.Err(), holdfast.ErrLost) || time.Until(held.Deadline()) < time.Second {
			t.Errorf("told after %v: %v", took, held.Err())
		}
	case <-time.After(time.Until(change.Known.Add(bound))):
		t.Errorf("not told, the deadline is in %v", time.Until(held.Deadline()))
	}
	h := served(t, recovered, stolen)
	if h.Token() <= held.Token() {
		t.Errorf("the new holder's token %d is not greater than %d", h.Token(), held.Token())
	}
	put(t, h)
	if err := held.Release(context.Background()); !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("release: %v", err)
	}
}

// A hundred renewals in one write find a master that knows none of the scripts, in a switch that loses nothing.
func TestSentinelManyHoldsAreRenewedAtAMasterThatKnowsNoScript(t *testing.T) {
	const lease, n = 4 * time.Second, 250
	s, name := topology.StartSentinel(t), unique(t)
	client := newClient(t, s.Client())
	holds := make([]*holdfast.Hold, n)
	for i := range holds {
		holds[i] = take(t, client.Mutex(fmt.Sprint(name, ".", i), holdfast.Lease(lease)).Lock)
	}
	for _, r := range s.Replicas() {
		replicatedTo(t, s.Master().Client(), r.Client())
	}
	change := s.Failover()
	t.Log(change)
	if err := change.To.Client().ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 2*lease, "the new master renews them", func() bool {
		return scriptCalls(t, change.To.Client()) >= n
	})
	time.Sleep(time.Until(change.Known.Add(lease))) // whoever was not renewed since has run out
	for i, h := range holds {
		if !h.Valid() {
			t.Fatalf("hold %d: %v", i, h.Err())
		}
		put(t, h)
	}
}
