package topology

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// MasterName is how the sentinels call what they watch.
const MasterName = "mymaster"

const quorum = 2

// Sentinel is a master with two replicas, watched by three sentinels. A master that has been silent for 1.5 s
// counts as down.
type Sentinel struct {
	t         testing.TB
	nodes     []*Node
	sentinels []*Node
}

// Switch is what happened when another node became the master.
type Switch struct {
	From, To *Node
	Began    time.Time // the order was given, or the master killed
	Writable time.Time // the new master was seen to be one
	Known    time.Time // all sentinels named it
}

// String tells the times.
func (s Switch) String() string {
	return fmt.Sprintf("%v to %v: writable after %v, known to the sentinels after %v", s.From, s.To,
		s.Writable.Sub(s.Began).Round(time.Millisecond), s.Known.Sub(s.Began).Round(time.Millisecond))
}

// StartSentinel starts the six processes and returns when the replicas are in step and the sentinels know each other.
func StartSentinel(t testing.TB, opts ...Option) *Sentinel {
	t.Helper()
	o := resolve(opts)
	s := &Sentinel{t: t}
	for i := range 3 {
		name, extra := "master", []string{"repl-timeout 5"}
		if i > 0 {
			host, port := split(s.nodes[0].KnownAs())
			name, extra = fmt.Sprint("replica ", i), append(extra, "replicaof "+host+" "+port)
		}
		s.nodes = append(s.nodes, startNode(t, name, func(int, int) string {
			return o.text(slices.Concat(common, extra)...)
		}))
		if i == 0 && o.front != nil {
			s.nodes[0].known = o.front(s.nodes[0].Addr())
		}
	}
	// The replicas first: sentinels look only every ten seconds whether a replica is fit for promotion.
	await(t, "the replicas are in step", 20*time.Millisecond, s.inStep)
	host, port := split(s.nodes[0].KnownAs())
	for i := range 3 {
		s.sentinels = append(s.sentinels, startNode(t, fmt.Sprint("sentinel ", i+1), func(int, int) string {
			return (&options{}).text(
				fmt.Sprintf("sentinel monitor %s %s %s %d", MasterName, host, port, quorum),
				"sentinel down-after-milliseconds "+MasterName+" 1500", // with 1000 some take a new master for dead before its first PONG
				"sentinel failover-timeout "+MasterName+" 3000",
				"sentinel parallel-syncs "+MasterName+" 2",
			)
		}, "--sentinel"))
	}
	await(t, "the sentinels know each other and the replicas", 50*time.Millisecond, func(ctx context.Context) error {
		return each(s.sentinels, func(n *Node) error { return s.informed(ctx, n, s.nodes[0].KnownAs()) })
	})
	return s
}

func split(addr string) (host, port string) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		panic(err) // it is our own
	}
	return host, port
}

// Nodes returns the nodes that hold data, whatever their roles.
func (s *Sentinel) Nodes() []*Node { return slices.Clone(s.nodes) }

// Sentinels returns the sentinels.
func (s *Sentinel) Sentinels() []*Node { return slices.Clone(s.sentinels) }

// Master returns the node that the sentinels name, all of them.
func (s *Sentinel) Master() *Node {
	s.t.Helper()
	var master *Node
	await(s.t, "the sentinels agree on a master", 10*time.Millisecond, func(ctx context.Context) error {
		var err error
		master, err = s.named(ctx)
		return err
	})
	return master
}

// Replicas returns the nodes that are not the master.
func (s *Sentinel) Replicas() []*Node {
	s.t.Helper()
	master := s.Master()
	return slices.DeleteFunc(s.Nodes(), func(n *Node) bool { return n == master })
}

// Client returns a client that finds the master through the sentinels, closed when the test ends.
func (s *Sentinel) Client(opts ...func(*redis.FailoverOptions)) *redis.Client {
	o := &redis.FailoverOptions{MasterName: MasterName}
	for _, n := range s.sentinels {
		o.SentinelAddrs = append(o.SentinelAddrs, n.Addr())
	}
	for _, apply := range opts {
		apply(o)
	}
	c := redis.NewFailoverClient(o)
	s.t.Cleanup(func() { _ = c.Close() }) // the test may have closed it already
	return c
}

// Failover orders a switch to another node, with the master alive, and waits until the sentinels name the new one. The
// old master goes on taking writes for some ten seconds, all of which are lost: see Settle.
func (s *Sentinel) Failover() Switch {
	s.t.Helper()
	from := s.Master()
	change := Switch{From: from, Began: time.Now()}
	await(s.t, "a sentinel starts a failover", 100*time.Millisecond, func(ctx context.Context) error {
		change.Began = time.Now()
		return s.sentinels[0].admin.Do(ctx, "SENTINEL", "FAILOVER", MasterName).Err()
	})
	return s.await(change)
}

// KillMaster is kill -9 of the master; it waits until another node took over.
func (s *Sentinel) KillMaster() Switch {
	s.t.Helper()
	from := s.Master()
	change := Switch{From: from, Began: time.Now()}
	from.Kill()
	return s.await(change)
}

// Settle waits until the living nodes follow the master that the sentinels name.
func (s *Sentinel) Settle() {
	s.t.Helper()
	await(s.t, "the nodes follow one master", 20*time.Millisecond, s.inStep)
	s.Master()
}

// Await waits until another node takes the place of a master that the test has killed or frozen.
func (s *Sentinel) Await(from *Node) Switch {
	s.t.Helper()
	return s.await(Switch{From: from, Began: time.Now()})
}

// await waits until another node than change.From is the master and the sentinels know.
func (s *Sentinel) await(change Switch) Switch {
	s.t.Helper()
	others := slices.DeleteFunc(s.living(), func(n *Node) bool { return n == change.From })
	await(s.t, "a replica is promoted", 5*time.Millisecond, func(ctx context.Context) error {
		for _, n := range others {
			if role, err := n.role(ctx); err == nil && role == "master" {
				change.To, change.Writable = n, time.Now()
				return nil
			}
		}
		return fmt.Errorf("none of %v is", others)
	})
	await(s.t, "the sentinels name the new master", 10*time.Millisecond, func(ctx context.Context) error {
		named, err := s.named(ctx)
		if err == nil && named != change.To {
			err = fmt.Errorf("they name %v instead of %v", named, change.To)
		}
		return err
	})
	change.Known = time.Now()
	return change
}

// AwaitTold waits until all sentinels have told their subscribers of the switch. The one in charge does so last: when
// the replicas follow the new master, a second after it has named it to those who ask.
func (s *Sentinel) AwaitTold(change Switch) {
	s.t.Helper()
	await(s.t, "the sentinels tell of the new master", 10*time.Millisecond, func(ctx context.Context) error {
		return each(s.sentinels, func(n *Node) error {
			client := redis.NewSentinelClient(impatient(n.Addr()))
			defer func() { _ = client.Close() }()
			m, err := client.Master(ctx, MasterName).Result()
			if addr := net.JoinHostPort(m["ip"], m["port"]); err == nil && addr != change.To.KnownAs() {
				err = fmt.Errorf("%v watches %s", n, addr)
			}
			return err
		})
	})
}

// living are the nodes with data that are neither dead nor frozen.
func (s *Sentinel) living() []*Node {
	return slices.DeleteFunc(s.Nodes(), func(n *Node) bool { return n.dead })
}

// inStep makes sure that of the living nodes one is the master and the others follow it.
func (s *Sentinel) inStep(ctx context.Context) error {
	living := s.living()
	var master *Node
	for _, n := range living {
		switch role, err := n.role(ctx); {
		case err != nil:
			return err
		case role == "master" && master != nil:
			return fmt.Errorf("both %v and %v are masters", master, n)
		case role == "master":
			master = n
		}
	}
	if master == nil {
		return fmt.Errorf("none of %v is the master", living)
	}
	if err := master.feeds(ctx, len(living)-1); err != nil {
		return err
	}
	return each(living, func(n *Node) error {
		if n == master {
			return nil
		}
		return n.linked(ctx)
	})
}

// named returns the master that all living sentinels name.
func (s *Sentinel) named(ctx context.Context) (*Node, error) {
	var master *Node
	for _, n := range s.sentinels {
		if n.dead {
			continue
		}
		at, err := n.admin.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterName).StringSlice()
		if err != nil || len(at) != 2 {
			return nil, fmt.Errorf("%v names %v: %w", n, at, err)
		}
		addr := net.JoinHostPort(at[0], at[1])
		i := slices.IndexFunc(s.nodes, func(n *Node) bool { return n.KnownAs() == addr })
		if i < 0 || master != nil && master != s.nodes[i] {
			return nil, fmt.Errorf("%v names %s, another one %v", n, addr, master)
		}
		master = s.nodes[i]
	}
	if master == nil {
		return nil, fmt.Errorf("no sentinel is alive")
	}
	return master, nil
}

// informed makes sure that a sentinel can fail over: it knows the others, and replicas that are fit.
func (s *Sentinel) informed(ctx context.Context, n *Node, master string) error {
	client := redis.NewSentinelClient(impatient(n.Addr()))
	defer func() { _ = client.Close() }()
	m, err := client.Master(ctx, MasterName).Result()
	if err != nil {
		return fmt.Errorf("%v: %w", n, err)
	}
	addr := net.JoinHostPort(m["ip"], m["port"])
	if addr != master || m["flags"] != "master" || m["num-slaves"] != "2" || m["num-other-sentinels"] != "2" {
		return fmt.Errorf("%v sees master %s, flags %s, %s replicas, %s other sentinels", n, addr, m["flags"], m["num-slaves"], m["num-other-sentinels"])
	}
	replicas, err := client.Replicas(ctx, MasterName).Result()
	if err != nil {
		return fmt.Errorf("%v: %w", n, err)
	}
	for _, r := range replicas {
		if r["flags"] != "slave" || r["master-link-status"] != "ok" {
			return fmt.Errorf("%v sees replica %s, flags %s, link %s", n, r["name"], r["flags"], r["master-link-status"])
		}
	}
	return nil
}
