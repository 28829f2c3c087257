package topology_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/integration/topology"
)

func TestSentinelClientFollowsTheMaster(t *testing.T) {
	s := topology.StartSentinel(t)
	client := s.Client()
	set := func(value string) {
		t.Helper()
		write(t, func(ctx context.Context) error { return client.Set(ctx, "k", value, 0).Err() })
		write(t, func(ctx context.Context) error {
			if n, err := client.Wait(ctx, 1, time.Second).Result(); n < 1 {
				return errors.Join(err, errors.New("no replica has it"))
			}
			return nil
		})
	}
	set("1")
	first := s.Master()
	change := s.Failover()
	t.Log(change)
	if change.From != first || change.To == first || s.Master() != change.To {
		t.Fatalf("%v, and now %v", change, s.Master())
	}
	s.Settle()
	set("2")
	change = s.KillMaster()
	t.Log(change)
	if got, err := change.To.Client().Get(t.Context(), "k").Result(); got != "2" {
		t.Errorf("the new master has %q, %v", got, err)
	}
	set("3")
}

// write tries until it works.
func write(t *testing.T, f func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestClusterMovesSlotsAndReplacesMasters(t *testing.T) {
	c := topology.StartCluster(t)
	client := c.Client()
	const key = "k"
	if err := client.Set(t.Context(), key, "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	from := c.NodeOf(key)
	masters := c.Masters()
	if len(masters) != 3 {
		t.Fatalf("masters %v", masters)
	}
	to := masters[0]
	if to == from {
		to = masters[1]
	}

	m := c.MigrateSlot(c.Slot(key), from, to)
	m.Begin()
	if n := m.Move(10); n != 1 {
		t.Errorf("moved %d keys", n)
	}
	if err := from.Client().Get(t.Context(), key).Err(); !redis.HasErrorPrefix(err, "ASK") {
		t.Errorf("in the middle the old master says %v", err)
	}
	m.Finish()
	if err := from.Client().Get(t.Context(), key).Err(); !redis.HasErrorPrefix(err, "MOVED") {
		t.Errorf("in the end the old master says %v", err)
	}
	if c.NodeOf(key) != to {
		t.Errorf("%v serves it", c.NodeOf(key))
	}

	replica := c.ReplicaOf(to)
	c.FailoverTo(replica)
	if c.NodeOf(key) != replica || c.ReplicaOf(replica) != to {
		t.Errorf("after the order %v serves it", c.NodeOf(key))
	}
	began := time.Now()
	dead := c.KillMasterOf(key)
	promoted := c.Promoted(key, dead)
	t.Logf("%v in the place of %v after %v", promoted, dead, time.Since(began))
	if dead != replica || promoted != to {
		t.Errorf("%v in the place of %v", promoted, dead)
	}
	c.Settle()
	dead.Restart()
	c.Settle()
	if c.NodeOf(key) != to || c.ReplicaOf(to) != dead {
		t.Errorf("the dead node came back as something else")
	}
}
