package integration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/topology"
)

// A deployment is a Sentinel set or a Cluster, as a storm of dying masters needs it.
type deployment struct {
	name     string // of a lock in it
	client   func(dial dialer) redis.UniversalClient
	master   func() *topology.Node // of the name
	replicas func() []*topology.Node
	replace  func(dead *topology.Node) // waits until another one is the master, and makes the dead one its replica
	period   time.Duration             // from death to death
}

type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

func sentinelSet(t *testing.T) deployment {
	s := topology.StartSentinel(t)
	return deployment{
		name: unique(t),
		client: func(dial dialer) redis.UniversalClient {
			return s.Client(func(o *redis.FailoverOptions) { o.Dialer = dial })
		},
		period:   5 * time.Second,
		master:   s.Master,
		replicas: s.Replicas,
		replace: func(dead *topology.Node) {
			change := s.Await(dead)
			dead.Restart()
			host, port, err := net.SplitHostPort(change.To.Addr())
			if err == nil {
				err = dead.Direct().ReplicaOf(context.Background(), host, port).Err() // the sentinels would take ten seconds
			}
			if err != nil {
				t.Fatal(err)
			}
			s.Settle()
		},
	}
}

func cluster(t *testing.T) deployment {
	c := topology.StartCluster(t, topology.Config("cluster-require-full-coverage no"))
	name := unique(t)
	key := holdfast.DefaultPrefix + "mutex:" + name
	return deployment{
		name:   name,
		period: 7 * time.Second, // four to replace a master
		client: func(dial dialer) redis.UniversalClient {
			return c.Client(func(o *redis.ClusterOptions) { o.Dialer = dial })
		},
		master:   func() *topology.Node { return c.NodeOf(key) },
		replicas: func() []*topology.Node { return []*topology.Node{c.ReplicaOf(c.NodeOf(key))} },
		replace: func(dead *topology.Node) {
			c.Promoted(key, dead)
			dead.Restart() // it is told of its new role
			c.Settle()
		},
	}
}

// vault is a resource that accepts no token smaller than one before.
type vault struct {
	mu      sync.Mutex // guards what follows
	top     int64
	refused int
}

func (v *vault) write(token int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if token < v.top {
		v.refused++
		return
	}
	v.top = token
}

// storm is a rally in which masters die, right after their replicas have been cut off.
type storm struct {
	deployment
	*rally
	vault  vault
	linger atomic.Bool // who is given a hold now keeps it while this or away is true, unless he is told of its loss
	away   atomic.Bool // those who keep a hold can connect to nothing
	keeps  [workers]atomic.Bool
	times  stormTimes
	deaths []death
}

// stormTimes are how long a master lives without replicas, and how long a hold is kept when there is a new master.
type stormTimes struct{ cut, keep time.Duration }

// death is that of one master, in monotonic's time.
type death struct {
	killed, replaced int64
	released         int64 // from here on nobody keeps his hold
}

const (
	stormLease = 12 * time.Second // a holder is not told by chance: a renewal comes later than a new master
	workers    = 8
)

func startStorm(t *testing.T, d deployment, times stormTimes, options ...holdfast.LockOption) *storm {
	t.Helper()
	s := &storm{deployment: d, times: times}
	acquire := make([]func(context.Context) (*holdfast.Hold, error), workers)
	for i := range acquire {
		client := newClient(t, d.client(func(ctx context.Context, network, addr string) (net.Conn, error) {
			if s.keeps[i].Load() && s.away.Load() {
				return nil, errors.New("the network is away")
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}))
		acquire[i] = client.Mutex(d.name, append(options, holdfast.Lease(stormLease))...).Lock
	}
	s.rally = rallyWith(func(i int, h *holdfast.Hold) {
		time.Sleep(time.Millisecond)
		if s.linger.Load() {
			s.keeps[i].Store(true)
			for (s.linger.Load() || s.away.Load()) && h.Valid() {
				time.Sleep(time.Millisecond)
			}
			s.keeps[i].Store(false)
		}
		s.vault.write(h.Token())
	}, 1, acquire...)
	t.Cleanup(s.over)
	eventually(t, 10*time.Second, "the game is on", func() bool { return s.holds() > 100 })
	return s
}

// strike cuts replicas off and kills the master. Somebody has a hold then: one that was granted before, so that the
// replicas know it, or one of which they will not hear.
func (s *storm) strike(t *testing.T, before bool, cut func(master *topology.Node, replicas []*topology.Node)) {
	t.Helper()
	master, replicas := s.master(), s.replicas()
	if before {
		s.linger.Store(true)
		time.Sleep(100 * time.Millisecond)
	}
	cut(master, replicas)
	s.linger.Store(true)
	time.Sleep(s.times.cut)
	s.away.Store(true)
	s.linger.Store(false)
	killed := monotonic()
	master.Kill()
	for _, n := range replicas {
		if !n.Alive() {
			n.Resume()
		}
	}
	s.replace(master)
	replaced := monotonic()
	time.Sleep(s.times.keep) // the new master grants
	s.away.Store(false)
	s.deaths = append(s.deaths, death{killed, replaced, monotonic()})
}

// Ways to cut replicas off.
var (
	// bothLost: what the master writes from now on, no replica will have.
	bothLost = func(master *topology.Node, replicas []*topology.Node) {
		bothLag(master, replicas)
		dropReplicas(master)
	}
	// bothLag: they read it, but only when the master is dead.
	bothLag = func(_ *topology.Node, replicas []*topology.Node) {
		for _, n := range replicas {
			n.Pause()
		}
	}
	// oneLost: one replica has it.
	oneLost = func(master *topology.Node, replicas []*topology.Node) {
		replicas[0].Pause()
		dropReplicas(master)
	}
	cuts = []func(*topology.Node, []*topology.Node){bothLost, oneLost, bothLag}
)

func dropReplicas(master *topology.Node) {
	_ = master.Direct().Do(context.Background(), "CLIENT", "KILL", "TYPE", "replica").Err() // they may have gone by themselves
}

// rage has the master die n times, and the game go on for a while.
func (s *storm) rage(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		next := time.Now().Add(s.period)
		s.strike(t, i%2 == 1, cuts[i%len(cuts)])
		time.Sleep(max(time.Until(next), recovered/2))
	}
	s.over()
	s.deaths = append(s.deaths, death{killed: monotonic()})
}

// checkProgress makes sure that every worker was granted something between a kill and the next one.
func (s *storm) checkProgress(t *testing.T) {
	t.Helper()
	var took []string
	for i, d := range s.deaths[:len(s.deaths)-1] {
		first := make([]int64, workers)
		for _, h := range s.seen {
			if at := &first[h.Process]; h.Held > d.killed && h.Held < s.deaths[i+1].killed && (*at == 0 || h.Held < *at) {
				*at = h.Held
			}
		}
		after := func(at int64) time.Duration { return time.Duration(at - d.killed).Round(100 * time.Millisecond) }
		if slices.Contains(first, 0) {
			t.Errorf("after kill %d, replaced after %v, some were granted nothing until the next: %v", i, after(d.replaced), first)
			continue
		}
		took = append(took, fmt.Sprintf("%v/%v/%v", after(d.replaced), after(slices.Min(first)), after(slices.Max(first))))
	}
	t.Logf("from a kill until the master was replaced, and the first and the last worker were granted a hold: %s", strings.Join(took, ", "))
}

// lost counts the holds that were given and did not last.
func (r *rally) lost() (n int) {
	for _, f := range r.fails {
		if f.Held > 0 && errors.Is(f.err, holdfast.ErrLost) {
			n++
		}
	}
	return n
}

func (s *storm) String() string {
	return fmt.Sprintf("%d holds, %d of them lost; %d calls failed; longest pause %v; %d stale writes refused",
		len(s.seen), s.lost(), len(s.fails), s.pause().Round(time.Millisecond), s.vault.refused)
}
