package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	shards = 3
	slots  = 16384
)

// Cluster is three masters, each with one replica. A node that has been silent for 1.5 s counts as down.
type Cluster struct {
	t     testing.TB
	nodes []*Node
}

// StartCluster starts the six processes and returns when all slots are served, all nodes know it, and the replicas
// are in step.
func StartCluster(t testing.TB, opts ...Option) *Cluster {
	t.Helper()
	o := resolve(opts)
	c := &Cluster{t: t}
	bus := make(map[*Node]int)
	for i := range 2 * shards {
		var port int
		n := startNode(t, fmt.Sprint("node ", i), func(_, b int) string {
			port = b
			return o.text(slices.Concat(common, []string{
				"cluster-enabled yes",
				"cluster-port " + strconv.Itoa(b),
				"cluster-node-timeout 1500",
				"cluster-replica-validity-factor 0",
				"cluster-allow-replica-migration no",
			})...)
		})
		bus[n] = port
		c.nodes = append(c.nodes, n)
	}
	c.assemble(bus)
	return c
}

// assemble makes a cluster of lone nodes.
func (c *Cluster) assemble(bus map[*Node]int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), settle)
	defer cancel()
	for i, n := range c.nodes {
		id, err := n.admin.Do(ctx, "CLUSTER", "MYID").Text()
		if err != nil {
			c.t.Fatalf("%v: %v", n, err)
		}
		n.id = id
		host, port := split(n.Addr())
		cmds := [][]any{
			{"CLUSTER", "SET-CONFIG-EPOCH", i + 1}, // or they would begin by quarrelling about it
		}
		if i < shards {
			cmds = append(cmds, []any{"CLUSTER", "ADDSLOTSRANGE", i * slots / shards, (i+1)*slots/shards - 1})
		}
		for _, cmd := range cmds {
			if err := n.admin.Do(ctx, cmd...).Err(); err != nil {
				c.t.Fatalf("%v: %v: %v", n, cmd, err)
			}
		}
		if err := c.nodes[0].admin.Do(ctx, "CLUSTER", "MEET", host, port, bus[n]).Err(); err != nil {
			c.t.Fatalf("meeting %v: %v", n, err)
		}
	}
	await(c.t, "the nodes know each other", 20*time.Millisecond, func(ctx context.Context) error {
		return each(c.nodes, func(n *Node) error {
			v, err := n.view(ctx)
			if err == nil && len(v) != len(c.nodes) {
				err = fmt.Errorf("%v knows %d nodes", n, len(v))
			}
			return err
		})
	})
	for i, n := range c.nodes[shards:] {
		if err := n.admin.Do(ctx, "CLUSTER", "REPLICATE", c.nodes[i].id).Err(); err != nil {
			c.t.Fatalf("%v follows %v: %v", n, c.nodes[i], err)
		}
	}
	c.Settle()
}

// Settle waits until the living nodes agree on who serves which slot, all slots are served, and every replica is in
// step with its master.
func (c *Cluster) Settle() {
	c.t.Helper()
	await(c.t, "the cluster has settled", 20*time.Millisecond, func(ctx context.Context) error { return c.settled(ctx) })
}

func (c *Cluster) settled(ctx context.Context) error {
	var agreed string
	return each(c.living(), func(n *Node) error {
		info, err := n.admin.ClusterInfo(ctx).Result()
		if err != nil {
			return fmt.Errorf("%v: %w", n, err)
		}
		if !containsLine(info, "cluster_state:ok") || !containsLine(info, "cluster_slots_assigned:"+strconv.Itoa(slots)) {
			return fmt.Errorf("%v: the cluster is not ok", n)
		}
		v, err := n.view(ctx)
		if err != nil {
			return err
		}
		if agreed == "" {
			agreed = v.owners()
		}
		if owners := v.owners(); owners != agreed {
			return fmt.Errorf("%v sees %s, another one %s", n, owners, agreed)
		}
		for _, m := range v {
			if o := c.byID(m.id); o != nil && !o.dead && (m.failing || m.myself && m.master == "" && !c.serves(v, m)) {
				return fmt.Errorf("%v sees %v failing %v", n, o, m.failing)
			}
		}
		return c.replicates(ctx, n, v)
	})
}

// serves reports whether a master has slots: one without is not yet told its role.
func (c *Cluster) serves(v view, m member) bool { return len(v[m.id].slots) > 0 }

// replicates makes sure of n's part in replication: a replica is linked, a master feeds those that live.
func (c *Cluster) replicates(ctx context.Context, n *Node, v view) error {
	if v[n.id].master != "" {
		return n.linked(ctx)
	}
	replicas := 0
	for _, m := range v {
		if o := c.byID(m.id); m.master == n.id && o != nil && !o.dead {
			replicas++
		}
	}
	return n.feeds(ctx, replicas)
}

func (c *Cluster) byID(id string) *Node {
	for _, n := range c.nodes {
		if n.id == id {
			return n
		}
	}
	return nil
}

// living are the nodes that are neither dead nor frozen.
func (c *Cluster) living() []*Node {
	return slices.DeleteFunc(c.Nodes(), func(n *Node) bool { return n.dead })
}

// Nodes returns all nodes.
func (c *Cluster) Nodes() []*Node { return slices.Clone(c.nodes) }

// Client returns a client of the cluster, closed when the test ends.
func (c *Cluster) Client(opts ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	o := &redis.ClusterOptions{}
	for _, n := range c.nodes {
		o.Addrs = append(o.Addrs, n.Addr())
	}
	for _, apply := range opts {
		apply(o)
	}
	client := redis.NewClusterClient(o)
	c.t.Cleanup(func() { _ = client.Close() }) // the test may have closed it already
	return client
}

// Slot returns the slot of a key.
func (c *Cluster) Slot(key string) int {
	c.t.Helper()
	var slot int64
	await(c.t, "a node computes a slot", 20*time.Millisecond, func(ctx context.Context) (err error) {
		slot, err = c.living()[0].admin.ClusterKeySlot(ctx, key).Result()
		return err
	})
	return int(slot)
}

// Masters returns the masters that live.
func (c *Cluster) Masters() []*Node {
	c.t.Helper()
	var masters []*Node
	await(c.t, "the nodes tell their roles", 20*time.Millisecond, func(ctx context.Context) error {
		masters = nil
		return each(c.living(), func(n *Node) error {
			v, err := n.view(ctx)
			if err == nil && len(v[n.id].slots) > 0 {
				masters = append(masters, n)
			}
			return err
		})
	})
	return masters
}

// NodeOf returns the master that serves a key.
func (c *Cluster) NodeOf(key string) *Node {
	c.t.Helper()
	slot := c.Slot(key)
	var owner *Node
	await(c.t, fmt.Sprintf("slot %d has a master", slot), 5*time.Millisecond, func(ctx context.Context) (err error) {
		owner, err = c.owner(ctx, slot)
		return err
	})
	return owner
}

// owner is the node that says of itself that it serves the slot; a deposed one may say so, too, so the last election
// counts.
func (c *Cluster) owner(ctx context.Context, slot int) (*Node, error) {
	var owner *Node
	var epoch int64
	err := each(c.living(), func(n *Node) error {
		v, err := n.view(ctx)
		if me := v[n.id]; err == nil && me.serves(slot) && (owner == nil || me.epoch > epoch) {
			owner, epoch = n, me.epoch
		}
		return err
	})
	if err == nil && owner == nil {
		err = errors.New("nobody serves it")
	}
	return owner, err
}

// ReplicaOf returns the living replica of a master.
func (c *Cluster) ReplicaOf(master *Node) *Node {
	c.t.Helper()
	var replica *Node
	await(c.t, fmt.Sprintf("%v has a replica", master), 20*time.Millisecond, func(ctx context.Context) error {
		for _, n := range c.living() {
			v, err := n.view(ctx)
			if err != nil {
				return err
			}
			if v[n.id].master == master.id {
				replica = n
				return nil
			}
		}
		return errors.New("none says that it follows it")
	})
	return replica
}

// KillMasterOf is kill -9 of the master that serves a key, and returns it. It does not wait: see Promoted.
func (c *Cluster) KillMasterOf(key string) *Node {
	c.t.Helper()
	master := c.NodeOf(key)
	master.Kill()
	return master
}

// Promoted waits until another node than the old master serves a key, and returns it at once: others may not know yet.
func (c *Cluster) Promoted(key string, old *Node) *Node {
	c.t.Helper()
	slot := c.Slot(key)
	var owner *Node
	await(c.t, fmt.Sprintf("somebody serves slot %d in the place of %v", slot, old), 5*time.Millisecond, func(ctx context.Context) (err error) {
		if owner, err = c.owner(ctx, slot); err == nil && owner == old {
			err = errors.New("it does so itself")
		}
		return err
	})
	return owner
}

// FailoverTo has a replica take its master's place, with the master's consent, so that no write is lost. It waits
// until the cluster has settled.
func (c *Cluster) FailoverTo(replica *Node) {
	c.t.Helper()
	var ordered time.Time
	await(c.t, fmt.Sprintf("%v becomes the master", replica), 5*time.Millisecond, func(ctx context.Context) error {
		role, err := replica.role(ctx)
		if err != nil || role == "master" {
			return err
		}
		if time.Since(ordered) > 6*time.Second { // it is given up after five; an order in between begins anew
			ordered = time.Now()
			if err := replica.admin.Do(ctx, "CLUSTER", "FAILOVER").Err(); err != nil {
				ordered = time.Time{}
				return err
			}
		}
		return errors.New("it was ordered")
	})
	c.Settle()
}
