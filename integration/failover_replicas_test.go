package integration

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/topology"
)

// deployments are where masters die, and how many replicas must acknowledge there: all, so that whichever takes over has
// every hold.
var deployments = []struct {
	name     string
	start    func(*testing.T) deployment
	replicas int
}{
	{"Sentinel", sentinelSet, 2},
	{"Cluster", cluster, 1},
}

// kills is how often masters die: for a minute or more in the whole matrix.
func kills() int {
	if os.Getenv("HOLDFAST_FULL") == "1" {
		return 12
	}
	return 2
}

// Masters die one after the other, each right after its replicas have been cut off. A hold that all replicas acknowledged
// outlasts that, and there is no other: no two hold at once, and everybody goes on.
func TestAcknowledgedHoldsExcludeWhileMastersDie(t *testing.T) {
	notShort(t)
	for _, on := range deployments {
		t.Run(on.name, func(t *testing.T) {
			if on.name == "Cluster" {
				needsFull(t)
			}
			s := startStorm(t, on.start(t), stormTimes{cut: 300 * time.Millisecond, keep: time.Second}, holdfast.Replicas(on.replicas, 200*time.Millisecond))
			s.rage(t, kills())
			t.Log(s)
			s.checkProgress(t)
			s.checkTokens(t)
			s.checkOverlaps(t, func(_, _ sighting) bool { return false })
			if s.vault.refused > 0 || s.lost() > 0 {
				t.Errorf("%d stale writes, %d holds lost", s.vault.refused, s.lost())
			}
			for _, f := range s.fails {
				if !errors.Is(f.err, holdfast.ErrUnavailable) {
					t.Errorf("%+v: %v", f.sighting, f.err)
				}
			}
		})
	}
}

// The same without acknowledgement: holds that the master had granted are lost with it, and others are granted the name
// before the holders are told. What checks tokens refuses what they write.
func TestUnacknowledgedHoldsAreLostWithTheirMastersAndTokensTell(t *testing.T) {
	notShort(t)
	for _, on := range deployments {
		t.Run(on.name, func(t *testing.T) {
			if on.name == "Cluster" {
				needsFull(t)
			}
			// A grant lasts for three seconds until it is renewed, after one. And before somebody is granted the name, a client
			// may have to find out that what blocks it is a hold of its own which it had released.
			s := startStorm(t, on.start(t), stormTimes{cut: 1300 * time.Millisecond, keep: 4 * time.Second})
			s.rage(t, kills()-1)
			overlaps := s.checkOverlaps(t, func(_, _ sighting) bool { return true })
			t.Logf("%v; %d overlaps", s, overlaps)
			s.checkTokens(t)
			if overlaps == 0 || s.vault.refused == 0 {
				t.Error("nothing was lost: the test with acknowledgement proves nothing")
			}
		})
	}
}

// On a Cluster the replica of the name's master counts, and no other.
func TestClusterHoldsAreAcknowledgedByTheReplicaOfTheirMaster(t *testing.T) {
	notShort(t)
	const lease = 2 * time.Second
	c := topology.StartCluster(t)
	masters := c.Masters()
	client, acked := newClient(t, c.Client()), holdfast.Replicas(1, 200*time.Millisecond)
	on, off := elsewhere(t, c, unique(t), masters[0]), elsewhere(t, c, unique(t), masters[1])
	held := take(t, client.Mutex(on, acked, holdfast.Lease(lease)).Lock)
	spared := take(t, client.Mutex(off, acked, holdfast.Lease(lease)).Lock)
	replica := c.ReplicaOf(masters[0])
	conn := replica.Direct().Conn()
	defer func() { _ = conn.Close() }()
	if err := conn.ReadOnly(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if n := conn.Exists(t.Context(), holdfast.DefaultPrefix+"mutex:"+on).Val(); n != 1 {
		t.Error("acquired, but the replica does not know it")
	}
	if ended := held.Done(); !stays(ended, 2*lease) {
		t.Fatalf("lost although the replica acknowledges: %v", held.Err())
	}
	replica.Pause()
	defer replica.Resume()
	if _, err := client.Mutex("other."+on, acked).TryLock(within(t, 5*time.Second)); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("acquired without a replica: %v", err)
	}
	select {
	case <-held.Done():
		t.Log(held.Err())
	case <-time.After(2 * lease):
		t.Error("renewals that no replica acknowledges keep the hold alive")
	}
	if !spared.Valid() {
		t.Errorf("on another master: %v", spared.Err())
	}
	put(t, spared)
}
