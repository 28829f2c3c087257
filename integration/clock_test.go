package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/fakewall"
	"github.com/holdfast-go/holdfast/internal/tenure"
)

// The clock of a server decides when leases end. When it steps, they end early or late; tokens grow all the same, as
// long as the name has a key.

func TestServerClockForwardEndsLeasesAndTellsTheirHolders(t *testing.T) {
	t.Parallel()
	srv := fakewall.Start(t)
	all := contests(t, srv.Server)
	srv.Step(time.Hour)
	for _, c := range all {
		c.lost(t)
	}
	expires(t, srv.Client())
}

// Who lives does not notice: renewals and waits go by what is left, and what is left never falls short. A name that
// somebody waits for, before the step or after it, keeps its tokens in order.
func TestServerClockBackIsNotNoticedByTheLiving(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"mutex", "fair", "write", "sem1"} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprint(kind, late), func(t *testing.T) {
				t.Parallel()
				srv, name := fakewall.Start(t), unique(t)
				mine, other := newClient(t, srv.Client()), newClient(t, srv.Client())
				lock := acquirer(mine, kind, name, holdfast.Lease(lossLease))
				hold := take(t, lock)
				next := make(chan result, 1)
				wait := func() {
					go func() {
						h, err := acquirer(other, kind, name, holdfast.Lease(lossLease))(within(t, 30*time.Second))
						next <- result{h, err}
					}()
					inQueue(t, 1, inspector(mine, kind, name))
				}
				if !late {
					wait()
				}
				srv.Step(-time.Hour)
				if late {
					wait()
				}
				before := hold.Deadline()
				eventually(t, 20*time.Second, "a renewal", func() bool { return hold.Err() != nil || hold.Deadline().After(before) })
				put(t, hold)
				second := served(t, 20*time.Second, next)
				put(t, second)
				third := take(t, lock) // the key was kept: tokens are ahead of the clock
				if hold.Token() >= second.Token() || second.Token() >= third.Token() {
					t.Errorf("tokens %d, %d, %d", hold.Token(), second.Token(), third.Token())
				}
				put(t, third)
				expires(t, srv.Client())

				srv.Step(time.Hour)
				fourth := take(t, lock)
				if fourth.Token() <= third.Token() {
					t.Errorf("token %d after %d", fourth.Token(), third.Token())
				}
				put(t, fourth)
			})
		}
	}
}

// A waiting client counts as alive by a clock of the key's own, so that a dead one is passed over even then.
func TestServerClockBackDoesNotKeepDeadWaitersAlive(t *testing.T) {
	t.Parallel()
	srv := fakewall.Start(t)
	lock := newClient(t, srv.Client()).FairLock(unique(t), holdfast.Lease(lossLease))
	hold := take(t, lock.Lock)
	doomed := hire(t, srv.Addr())
	doomed.tell("acquire 1 fair %s 3s", lock.Name())
	inQueue(t, 1, lock.Inspect)
	srv.Step(-time.Hour)
	doomed.Kill()
	next := make(chan result, 1)
	go func() {
		h, err := newClient(t, srv.Client()).FairLock(lock.Name()).Lock(within(t, time.Minute))
		next <- result{h, err}
	}()
	inQueue(t, 2, lock.Inspect)
	put(t, hold)
	put(t, served(t, 30*time.Second, next))
}

// The limit that docs/protocol.md states: nobody can tell a lease that was stretched from one that is renewed.
func TestServerClockBackStretchesTheLeaseOfADeadHolder(t *testing.T) {
	t.Parallel()
	srv := fakewall.Start(t)
	m := newClient(t, srv.Client()).Mutex(unique(t), holdfast.Lease(lossLease))
	doomed := hire(t, srv.Addr())
	doomed.tell("acquire 1 mutex %s 3s", m.Name())
	doomed.hear("granted 1")
	doomed.Kill()
	srv.Step(-time.Hour)
	state, err := m.Inspect(within(t, 5*time.Second))
	must(t, err)
	if len(state.Holders) != 1 || state.Holders[0].LeaseLeft < 59*time.Minute {
		t.Fatalf("it holds no longer than others: %+v", state)
	}
	next := lockAside(within(t, time.Minute), m)
	queued(t, m, 1)
	must(t, newClient(t, srv.Client()).Mutex(m.Name()).ForceRelease(within(t, 5*time.Second)))
	got := served(t, 20*time.Second, next)
	if got.Token() <= state.Token {
		t.Errorf("token %d after %d", got.Token(), state.Token)
	}
	put(t, got)
}

// An idle name has no key, and nothing remembers its last token but the clock.
func TestServerClockBackOverAnIdleNameSetsItsTokensBack(t *testing.T) {
	t.Parallel()
	srv := fakewall.Start(t)
	m := newClient(t, srv.Client()).Mutex(unique(t))
	before := locked(t, m)
	released(t, before)
	eventually(t, 10*time.Second, "the key is gone", func() bool { return srv.Client().Exists(context.Background(), key(m)).Val() == 0 })
	srv.Step(-time.Hour)
	after := locked(t, m)
	if back := time.Duration(tenure.BaseOf(before.Token())-tenure.BaseOf(after.Token())) * time.Microsecond; back < 59*time.Minute {
		t.Errorf("its tokens went back by %v only: docs/reliability.md promises less than there is", back)
	}
	released(t, after)
}
