package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/topology"
)

// recovered is how long after a new master accepts writes everybody must make progress: a poll, and a good second for
// the client to be told and to connect.
const recovered = 2500 * time.Millisecond

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
			if change.From.Alive() { // it serves those who are not told
				s.AwaitTold(change)
				serving = time.Now()
			}
			before := r.holds()
			time.Sleep(recovered + time.Second) // the game goes on, long enough to see who does not
			after := r.holds()
			r.over()
			took := r.recovery(t, mono(serving))
			t.Logf("%v; all players hold again after %v, which is %v after it was writable; longest pause %v; %d holds before, %d after",
				change, took.Round(time.Millisecond), (serving.Sub(change.Writable) + took).Round(time.Millisecond), r.pause().Round(time.Millisecond), before, after-before)
			if took > recovered {
				t.Errorf("it took %v until all players held again", took)
			}
			r.checkTokens(t)
			// By then all clients know.
			from, to := mono(change.Began), mono(serving.Add(2*time.Second))
			n := r.checkOverlaps(t, func(a, b sighting) bool {
				granted := a.Held <= to && b.Held >= mono(change.Writable)
				return granted && time.Duration(min(a.Left, a.Deadline)-b.Held) < lease/3+500*time.Millisecond
			})
			t.Logf("%d overlaps, %d releases failed", n, len(r.fails))
			r.checkFails(t, from, to, holdfast.ErrLost, holdfast.ErrUnavailable)
		})
	}
}

// A hold that the replicas know outlasts the change of masters, and who waited before gets it afterwards.
func TestSentinelReplicatedHoldsAndTheirWaitersOutlastTheMaster(t *testing.T) {
	needsFull(t)
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

// A hold that no replica has heard of is gone with its master. Its holder is told by its next renewal, long before its
// deadline, and whoever got the name from the new master has the greater token.
func TestSentinelHoldThatWasNotReplicatedIsToldOfItsLoss(t *testing.T) {
	notShort(t)
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
	needsFull(t)
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
