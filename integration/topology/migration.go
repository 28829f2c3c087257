package topology

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Migration moves a slot from one master to another, step by step: Begin, Move as often as wanted, Finish.
type Migration struct {
	cluster  *Cluster
	slot     int
	from, to *Node
}

// MigrateSlot prepares a migration. Nothing is sent yet.
func (c *Cluster) MigrateSlot(slot int, from, to *Node) *Migration {
	return &Migration{cluster: c, slot: slot, from: from, to: to}
}

// Begin opens the slot: from now on the old master answers ASK for keys that it does not have, and the new one serves
// those who follow.
func (m *Migration) Begin() {
	m.cluster.t.Helper()
	m.must(m.to, "CLUSTER", "SETSLOT", m.slot, "IMPORTING", m.from.id)
	m.must(m.from, "CLUSTER", "SETSLOT", m.slot, "MIGRATING", m.to.id)
}

// Move carries up to n keys over and returns how many there were.
func (m *Migration) Move(n int) int {
	m.cluster.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), settle)
	defer cancel()
	keys, err := m.from.admin.ClusterGetKeysInSlot(ctx, m.slot, n).Result()
	if err != nil {
		m.cluster.t.Fatalf("keys of slot %d: %v", m.slot, err)
	}
	if len(keys) == 0 {
		return 0
	}
	host, port := split(m.to.Addr())
	args := []any{"MIGRATE", host, port, "", 0, 2000, "KEYS"}
	for _, k := range keys {
		args = append(args, k)
	}
	if err := m.from.admin.Do(ctx, args...).Err(); err != nil {
		m.cluster.t.Fatalf("moving %d keys of slot %d: %v", len(keys), m.slot, err)
	}
	return len(keys)
}

// Finish carries the rest over, gives the slot to the new master and waits until all nodes know.
func (m *Migration) Finish() {
	m.cluster.t.Helper()
	await(m.cluster.t, fmt.Sprintf("slot %d is %v's", m.slot, m.to), 5*time.Millisecond, func(ctx context.Context) error {
		for m.Move(100) > 0 {
		}
		// The new master first: the other way round nobody would serve the slot for a moment. The old one refuses
		// while it still has keys.
		for _, n := range []*Node{m.to, m.from} {
			if err := n.admin.Do(ctx, "CLUSTER", "SETSLOT", m.slot, "NODE", m.to.id).Err(); err != nil {
				return fmt.Errorf("%v: %w", n, err)
			}
		}
		return nil
	})
	for _, n := range m.cluster.Masters() {
		if n != m.to && n != m.from {
			m.must(n, "CLUSTER", "SETSLOT", m.slot, "NODE", m.to.id)
		}
	}
	await(m.cluster.t, fmt.Sprintf("all nodes know that slot %d is %v's", m.slot, m.to), 20*time.Millisecond, func(ctx context.Context) error {
		return each(m.cluster.living(), func(n *Node) error {
			v, err := n.view(ctx)
			if err == nil && !v[m.to.id].serves(m.slot) {
				err = errors.New(n.String() + " does not")
			}
			return err
		})
	})
}

func (m *Migration) must(n *Node, args ...any) {
	m.cluster.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), settle)
	defer cancel()
	if err := n.admin.Do(ctx, args...).Err(); err != nil {
		m.cluster.t.Fatalf("%v: %v: %v", n, args, err)
	}
}
