package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/topology"
)

// oddNames are n names with everything that the slot of a key, or a lesser way to make one, could stumble over.
func oddNames(n int) []string {
	names := []string{
		"{a}b", "a}b", "{}x", "}x{", "x{}y{z}", "{}", "{", "}", "{}{}", "{{a}}", "a{b", "{a}{b}", "{ }", "{a", "a}",
		"x", ":", "a:b", "a b", "\n", "\r\n", "\x00", "*", "[a]", "?", "%s", "'", `"`, `\`, "$1", "naïve", "鎖", "🔒", "{鎖}", "\xff\xfe", "}{\x00",
		strings.Repeat("k", 1000), strings.Repeat("{", 1000), strings.Repeat("鎖", 333), "{" + strings.Repeat("t", 1000) + "}x",
	}
	random := rand.New(rand.NewPCG(1, 2))
	const alphabet = "{}{}{}ab:\x00\xff "
	for len(names) < n {
		b := make([]byte, 1+random.IntN(20))
		for i := range b {
			b[i] = alphabet[random.IntN(len(alphabet))]
		}
		if !slices.Contains(names, string(b)) {
			names = append(names, string(b))
		}
	}
	return names
}

// Two hundred names are held at once, so that none stands for another; are waited for by another client, whom only a
// push can wake; are renewed in batches over all nodes; and passed on.
func TestClusterTakesEveryName(t *testing.T) {
	const lease = 60 * time.Second
	c := topology.StartCluster(t)
	names := oddNames(200)
	holding := newClient(t, c.Client(), slowPolls())
	waiting := newClient(t, c.Client(), slowPolls())
	before := replies(t, c, "MOVED")
	for _, kind := range []string{"mutex", "fair", "write", "read", "sem1"} {
		t.Run(kind, func(t *testing.T) {
			began := time.Now()
			holds := make([]*holdfast.Hold, len(names))
			for i, name := range names {
				h, err := acquirer(holding, kind, name, holdfast.Lease(lease), holdfast.Wait(5*time.Second))(t.Context())
				if err != nil {
					t.Fatalf("%q: %v", name, err)
				}
				holds[i] = h
			}
			other := kind
			if kind == "read" {
				other = "write"
			}
			got := make([]<-chan result, len(names))
			for i, name := range names {
				ch := make(chan result, 1)
				got[i] = ch
				ctx := within(t, time.Minute)
				go func() {
					h, err := acquirer(waiting, other, name, holdfast.Lease(lease))(ctx)
					ch <- result{h, err}
				}()
			}
			for i, name := range names {
				inQueue(t, 1, inspectorOf(holding, kind, name))
				if err := holds[i].Extend(within(t, 5*time.Second)); err != nil {
					t.Errorf("%q: extend: %v", name, err)
				}
			}
			for i, name := range names {
				put(t, holds[i])
				h := served(t, 5*time.Second, got[i])
				if h.Token() <= holds[i].Token() || h.Name() != name {
					t.Errorf("%q: %v after %v", name, h, holds[i])
				}
				put(t, h)
			}
			t.Logf("%v", time.Since(began).Round(time.Millisecond))
		})
	}
	if n := replies(t, c, "MOVED") - before; n > 10 {
		t.Errorf("%d requests went to a wrong node", n)
	}
}

// A short lease has the watchdog renew two hundred odd names in its batches.
func TestClusterRenewsEveryName(t *testing.T) {
	const lease = 2 * time.Second
	c := topology.StartCluster(t)
	client := newClient(t, c.Client(), holdfast.Prefix("odd{}{prefix}:"))
	var holds []*holdfast.Hold
	for _, name := range oddNames(200) {
		holds = append(holds, take(t, client.Mutex(name, holdfast.Lease(lease)).Lock))
	}
	ended := holds[0].Done()
	if !stays(ended, 2*lease) { // of all of them the leases would have run out since
		t.Fatal(holds[0].Err())
	}
	for _, h := range holds {
		if !h.Valid() {
			t.Errorf("%q: %v", h.Name(), h.Err())
			continue
		}
		put(t, h)
	}
}

// replies counts the error replies of a code that all living nodes have given.
func replies(t testing.TB, c *topology.Cluster, code string) (sum int) {
	t.Helper()
	for _, n := range c.Nodes() {
		if !n.Alive() {
			continue
		}
		sum += counter(t, n.Direct(), "errorstats", "errorstat_"+code+":count=")
	}
	return sum
}

// counter reads a number of INFO behind the prefix of its line.
func counter(t testing.TB, rdb *redis.Client, section, prefix string) (n int) {
	t.Helper()
	info, err := rdb.Info(context.Background(), section).Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			_, _ = fmt.Sscanf(rest, "%d", &n)
		}
	}
	return n
}

// elsewhere returns a name of which the key of every kind of hold is served by the node.
func elsewhere(t *testing.T, c *topology.Cluster, base string, n *topology.Node) string {
	t.Helper()
	for i := range 1000 {
		name := fmt.Sprintf("%s{%d}", base, i) // one slot for all kinds
		if c.NodeOf("{"+fmt.Sprint(i)+"}") == n {
			return name
		}
	}
	t.Fatal("no name for the node")
	return ""
}

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

// listener returns a client that listens at another node than the given one.
func listener(t *testing.T, c *topology.Cluster, not *topology.Node) *holdfast.Client {
	t.Helper()
	for range 100 {
		if client := newClient(t, c.Client()); c.NodeOf(inbox(client)) != not {
			return client
		}
	}
	t.Fatal("all listen at one node")
	return nil
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

// Messages cross the bus: whoever publishes, and wherever the waiter listens, it is woken. Only a push can do that here.
func TestClusterPushesReachWaitersOnEveryNode(t *testing.T) {
	c, name := topology.StartCluster(t), unique(t)
	masters := c.Masters()
	var clients []*holdfast.Client
	listening := make(map[*topology.Node]bool)
	for range 12 { // until the inboxes are on all masters
		client := newClient(t, c.Client(), slowPolls())
		clients = append(clients, client)
		listening[c.NodeOf(inbox(client))] = true
		if len(clients) >= 4 && len(listening) == len(masters) {
			break
		}
	}
	if len(listening) < 2 {
		t.Fatal("all inboxes are on one node")
	}
	var slowest time.Duration
	for i, master := range masters {
		on := elsewhere(t, c, fmt.Sprint(name, i), master)
		for w := range clients {
			holder := clients[(w+1)%len(clients)]
			ks := post(t, holder, clients[w], on, farLease)
			for _, k := range ks {
				slowest = max(slowest, k.pass(t, promptly))
			}
		}
	}
	t.Logf("%d clients listen at %d nodes, the slowest push took %v", len(clients), len(listening), slowest.Round(time.Millisecond))
}

// inbox is the channel of a client.
func inbox(client *holdfast.Client) string { return holdfast.DefaultPrefix + "inbox:" + client.ID() }

// The node dies at which a waiter listens; what it waits for is on another one. Somewhere it must listen again.
func TestClusterWaiterListensAgainWhenItsNodeDied(t *testing.T) {
	for _, rare := range []bool{false, true} {
		t.Run(fmt.Sprintf("polls are rare: %v", rare), func(t *testing.T) {
			c := topology.StartCluster(t, topology.Config("cluster-require-full-coverage no"))
			var options []holdfast.Option
			if rare {
				options = append(options, slowPolls())
			}
			one, two := newClient(t, c.Client(), options...), newClient(t, c.Client(), options...)
			doomed := c.NodeOf(inbox(two))
			var other *topology.Node
			for _, n := range c.Masters() {
				if n != doomed {
					other = n
				}
			}
			ks := post(t, one, two, elsewhere(t, c, unique(t), other), farLease)
			doomed.Kill()
			if !rare { // a poll serves it at once
				t.Logf("served by a poll in %v", ks[0].pass(t, recovered).Round(time.Millisecond))
				ks = ks[1:]
			}
			c.Promoted(inbox(two), doomed)
			at := time.Now()
			if rare { // wake-ups must be back within seconds of the promotion
				eventually(t, 5*time.Second, "the waiter listens again", func() bool { return listeners(t, c, inbox(two)) > 0 })
				t.Logf("listens again %v after the promotion", time.Since(at).Round(time.Millisecond))
			}
			for _, k := range ks {
				t.Logf("%s: served in %v", k.kind, k.pass(t, recovered).Round(time.Millisecond))
			}
		})
	}
}

// listeners counts who listens to a channel at the nodes that live.
func listeners(t *testing.T, c *topology.Cluster, channel string) (sum int64) {
	t.Helper()
	for _, n := range c.Nodes() {
		if !n.Alive() {
			continue
		}
		counts, err := n.Direct().PubSubNumSub(t.Context(), channel).Result()
		if err != nil {
			t.Fatal(err)
		}
		sum += counts[channel]
	}
	return sum
}

// Clients that read from replicas send scripts to masters all the same, those that only look as well.
func TestClusterReplicaRoutingSendsScriptsToMasters(t *testing.T) {
	c := topology.StartCluster(t)
	for what, option := range map[string]func(*redis.ClusterOptions){
		"ReadOnly":       func(o *redis.ClusterOptions) { o.ReadOnly = true },
		"RouteByLatency": func(o *redis.ClusterOptions) { o.RouteByLatency = true },
		"RouteRandomly":  func(o *redis.ClusterOptions) { o.RouteRandomly = true },
	} {
		t.Run(what, func(t *testing.T) {
			if topology.Race && what == "RouteByLatency" {
				t.Skip("go-redis 9.23.0 races with itself: it measures the latency of a node before it is complete")
			}
			one, two := newClient(t, c.Client(option), slowPolls()), newClient(t, c.Client(option), slowPolls())
			before := replies(t, c, "MOVED")
			for i := range 30 {
				for _, k := range post(t, one, two, fmt.Sprint(unique(t), i), farLease) {
					k.still(t) // what Inspect tells is never that of a replica that lags
					k.pass(t, promptly)
				}
			}
			masters := c.Masters()
			for _, n := range c.Nodes() {
				if !slices.Contains(masters, n) {
					if calls := scriptCalls(t, n.Direct()); calls > 0 {
						t.Errorf("the replica %v ran %d scripts", n, calls)
					}
				}
			}
			if n := replies(t, c, "MOVED") - before; n > 10 {
				t.Errorf("%d requests went to a wrong node", n)
			}
		})
	}
}

// Between the death of a master and the end of the election a Try says that Redis is unavailable, and Lock waits.
func TestClusterTryTellsThatTheMasterIsAway(t *testing.T) {
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
