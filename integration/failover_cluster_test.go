package integration

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/topology"
)

// A slot moves to another node, step by step, while locks in it are held, waited for and passed on. Nothing is lost, and
// nobody waits for longer than a poll and a bit.
func TestClusterSlotMovesUnderHoldsAndWaiters(t *testing.T) {
	const lease = 3 * time.Second
	c, name := topology.StartCluster(t), unique(t)
	const tag = "{moving}"
	from := c.NodeOf(tag)
	to := c.Masters()[0]
	if to == from {
		to = c.Masters()[1]
	}
	one, two := newClient(t, c.Client()), newClient(t, c.Client())
	stages := make([][]*sentry, 5)
	for i := range stages {
		stages[i] = post(t, one, two, fmt.Sprint(name, i, tag), lease)
	}
	var games []*rally
	for i := range 3 {
		rallyName := fmt.Sprint(name, ".rally", i, tag)
		r := rallyOf(2, one.Mutex(rallyName, holdfast.Lease(lease)).Lock, two.Mutex(rallyName, holdfast.Lease(lease)).Lock)
		defer r.over()
		games = append(games, r)
	}
	eventually(t, 10*time.Second, "the games are on", func() bool { return games[0].holds() > 50 && games[2].holds() > 50 })
	check := func(i int, where string) {
		for _, ks := range stages[i:] {
			for _, k := range ks {
				k.still(t)
			}
		}
		var longest time.Duration
		for _, k := range stages[i] {
			longest = max(longest, k.pass(t, recovered))
		}
		t.Logf("%s: passed on in %v at most", where, longest.Round(time.Millisecond))
	}
	moved := replies(t, c, "MOVED")
	asked := replies(t, c, "ASK")
	check(0, "before")
	m := c.MigrateSlot(c.Slot(tag), from, to)
	m.Begin()
	check(1, "slot open, nothing moved")
	n := m.Move(7)
	check(2, fmt.Sprintf("%d keys moved", n))
	time.Sleep(lease) // everything is renewed in the middle
	check(3, "slot half moved for a lease")
	m.Finish()
	check(4, "after")
	time.Sleep(500 * time.Millisecond) // clients reload their map
	settled := replies(t, c, "MOVED")
	began := games[0].holds()
	eventually(t, 10*time.Second, "the games go on", func() bool { return games[0].holds() > began+200 })
	late := replies(t, c, "MOVED") - settled
	holds := 0
	for _, r := range games {
		r.over()
		holds += len(r.seen)
		r.checkTokens(t)
		r.checkOverlaps(t, func(_, _ sighting) bool { return false })
		r.checkFails(t, 0, 0)
		t.Logf("%d holds, longest pause %v", len(r.seen), r.pause().Round(time.Millisecond))
		if r.pause() > recovered {
			t.Errorf("nobody got in for %v", r.pause())
		}
	}
	t.Logf("%d holds; MOVED %d times in the migration, %d times since; ASK %d times", holds, settled-moved, late, replies(t, c, "ASK")-asked)
	if settled-moved > 300 || late > 0 {
		t.Errorf("MOVED %d times in the migration, %d times since", settled-moved, late)
	}
}

// A replica takes its master's place with its consent: no write is lost, so nothing may be.
func TestClusterOrderedFailoverLosesNothing(t *testing.T) {
	notShort(t)
	const lease = 3 * time.Second
	c, name := topology.StartCluster(t), unique(t)+"{tag}"
	one, two := newClient(t, c.Client()), newClient(t, c.Client())
	ks := post(t, one, two, name, lease)
	r := rallyOf(2, one.Mutex("rally."+name, holdfast.Lease(lease)).Lock, two.Mutex("rally."+name, holdfast.Lease(lease)).Lock)
	defer r.over()
	eventually(t, 10*time.Second, "the game is on", func() bool { return r.holds() > 100 })
	replica := c.ReplicaOf(c.NodeOf("{tag}"))
	moved := replies(t, c, "MOVED")
	began := time.Now()
	c.FailoverTo(replica)
	t.Logf("settled after %v", time.Since(began).Round(time.Millisecond))
	for end := began.Add(lease + time.Second); time.Now().Before(end) && !t.Failed(); time.Sleep(100 * time.Millisecond) {
		for _, k := range ks {
			k.still(t)
		}
	}
	for _, k := range ks {
		t.Logf("%s: passed on in %v", k.kind, k.pass(t, recovered).Round(time.Millisecond))
	}
	r.over()
	r.checkTokens(t)
	r.checkOverlaps(t, func(_, _ sighting) bool { return false })
	r.checkFails(t, 0, 0)
	t.Logf("%d holds, longest pause %v, MOVED %d times", len(r.seen), r.pause().Round(time.Millisecond), replies(t, c, "MOVED")-moved)
	if r.pause() > recovered {
		t.Errorf("nobody got in for %v", r.pause())
	}
	if n := replies(t, c, "MOVED") - moved; n > 200 {
		t.Errorf("MOVED %d times", n)
	}
}

// A master dies that serves held names, which others wait for. Its replica takes over: the holds last, the waiters are
// served. On the other masters nothing is felt.
func TestClusterHoldsAndWaitersOutlastAKilledMaster(t *testing.T) {
	needsFull(t)
	for _, coverage := range []string{"yes", "no"} {
		t.Run("full coverage required: "+coverage, func(t *testing.T) {
			const lease = 10 * time.Second
			c := topology.StartCluster(t, topology.Config("cluster-require-full-coverage "+coverage))
			one, two := newClient(t, c.Client()), newClient(t, c.Client())
			masters := c.Masters()
			doomed, other := masters[0], masters[1]
			on, off := elsewhere(t, c, unique(t), doomed), elsewhere(t, c, unique(t), other)
			ks, spared := post(t, one, two, on, lease), post(t, one, two, off, lease)
			replicatedIn(t, c, doomed, on)
			lowest := newGauge(spared)
			// On the other master; who listens at the doomed one would be woken by polls.
			r := rallyOf(1, listener(t, c, doomed).Mutex("rally."+off).Lock, listener(t, c, doomed).Mutex("rally."+off).Lock)
			defer r.over()
			key := holdfast.DefaultPrefix + "mutex:" + on
			began := time.Now()
			if c.KillMasterOf(key) != doomed {
				t.Fatal("killed another one")
			}
			promoted := c.Promoted(key, doomed)
			took := time.Now()
			t.Logf("%v took the place of %v after %v", promoted, doomed, took.Sub(began).Round(time.Millisecond))
			for _, k := range ks {
				t.Logf("%s: passed on %v after the promotion, in %v", k.kind, time.Since(took).Round(time.Millisecond), k.pass(t, recovered).Round(time.Millisecond))
			}
			for _, k := range spared[1:] {
				k.still(t)
			}
			spared[0].pass(t, time.Second)
			for end := began.Add(lease + 500*time.Millisecond); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				for _, k := range spared[1:] {
					if !k.hold.Valid() {
						t.Fatalf("%s on a master that lives: %v", k.kind, k.hold.Err())
					}
				}
			}
			r.over()
			r.checkTokens(t)
			r.checkOverlaps(t, func(_, _ sighting) bool { return false })
			r.checkFails(t, 0, 0)
			left := lowest.stop()
			t.Logf("on the other master: deadlines were never nearer than %v, the longest pause was %v", left.Round(time.Millisecond), r.pause().Round(time.Millisecond))
			// Renewed every third of the lease, a deadline never comes nearer than two thirds, less the margin.
			undisturbed, pause := lease*2/3-lease/10-500*time.Millisecond, 500*time.Millisecond
			if coverage == "yes" { // the others refuse everything between the verdict and the election
				undisturbed, pause = undisturbed-2500*time.Millisecond, 3*time.Second
			}
			if left < undisturbed || r.pause() > pause {
				t.Errorf("a master that lives was felt: deadlines as near as %v, a pause of %v", left, r.pause())
			}
			for _, k := range spared[1:] {
				k.pass(t, time.Second)
			}
		})
	}
}

// replicatedIn waits until the replica of a master has all that the master has written. The name gives a tag of its.
func replicatedIn(t *testing.T, c *topology.Cluster, master *topology.Node, name string) {
	t.Helper()
	tag := name[strings.IndexByte(name, '{'):]
	value := time.Now().String()
	if err := master.Direct().Set(t.Context(), "test:mark"+tag, value, time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	conn := c.ReplicaOf(master).Direct().Conn()
	defer func() { _ = conn.Close() }()
	if err := conn.ReadOnly(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "the replica is in step", func() bool {
		v, err := conn.Get(t.Context(), "test:mark"+tag).Result()
		return err == nil && v == value
	})
}

// gauge watches how near the deadlines of holds come.
type gauge struct {
	quit   chan struct{}
	wg     sync.WaitGroup
	lowest time.Duration // written by the goroutine until it has ended
}

func newGauge(ks []*sentry) *gauge {
	g := &gauge{quit: make(chan struct{}), lowest: time.Hour}
	holds := make([]*holdfast.Hold, len(ks))
	for i, k := range ks {
		holds[i] = k.hold
	}
	g.wg.Go(func() {
		for {
			for _, h := range holds {
				if left := time.Until(h.Deadline()); h.Valid() {
					g.lowest = min(g.lowest, left)
				}
			}
			select {
			case <-g.quit:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	return g
}

func (g *gauge) stop() time.Duration {
	close(g.quit)
	g.wg.Wait()
	return g.lowest
}

// Between the death of a master and the end of the election a Try says that Redis is unavailable, and Lock waits.
func TestClusterTryTellsThatTheMasterIsAway(t *testing.T) {
	notShort(t)
	c := topology.StartCluster(t, topology.Config("cluster-require-full-coverage no"))
	name := elsewhere(t, c, unique(t), c.Masters()[0])
	lock := newClient(t, c.Client()).Mutex(name)
	put(t, take(t, lock.Lock))
	dead := c.KillMasterOf(holdfast.DefaultPrefix + "mutex:" + name)
	if _, err := lock.TryLock(within(t, 5*time.Second)); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("TryLock says %v", err)
	}
	h := take(t, lock.Lock) // waits for the replica to take over
	t.Logf("locked at %v", c.Promoted(holdfast.DefaultPrefix+"mutex:"+name, dead))
	put(t, h)
}
