package integration

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
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
	needsFull(t) // with few kills it may happen that no hold is lost
	for _, on := range deployments {
		t.Run(on.name, func(t *testing.T) {
			// A grant lasts for three seconds until it is renewed, after one. And before somebody is granted the name, a client
			// may have to find out that what blocks it is a hold of its own which it had released.
			s := startStorm(t, on.start(t), stormTimes{cut: 1300 * time.Millisecond, keep: 4 * time.Second})
			s.rage(t, kills()-1)
			overlaps := s.checkOverlaps(t, func(_, _ sighting) bool { return true })
			t.Logf("%v; %d overlaps", s, overlaps)
			s.checkTokens(t)
			if s.lost() == 0 || overlaps == 0 || s.vault.refused == 0 {
				t.Error("nothing was lost: the test with acknowledgement proves nothing")
			}
		})
	}
}
