package integration

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/server"
)

// A client that talks to a replica, by a wrong address or an old one, acquires nothing and waits until it is the master.
func TestReplicaAsTargetIsUnavailableUntilItIsTheMaster(t *testing.T) {
	t.Parallel()
	master, replica := replicated(t)
	name := unique(t)
	hold := locked(t, newClient(t, master.Client()).Mutex(name, holdfast.Lease(farLease)))
	m := newClient(t, replica.Client()).Mutex(name)
	_, err := m.TryLock(within(t, 20*time.Second))
	expect(t, "TryLock of what a replica knows to be held", err, holdfast.ErrNotAcquired)
	_, err = newClient(t, replica.Client()).Mutex(name + ".free").TryLock(within(t, 20*time.Second))
	expect(t, "TryLock", err, holdfast.ErrUnavailable)
	_, err = m.Lock(within(t, 300*time.Millisecond))
	expect(t, "Lock", err, holdfast.ErrUnavailable, context.DeadlineExceeded)
	next := lockAside(within(t, time.Minute), m)
	must(t, replica.Client().Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
	queued(t, m, 1) // what the master had granted is known here
	must(t, m.ForceRelease(within(t, 10*time.Second)))
	got := served(t, 20*time.Second, next)
	if got.Token() <= hold.Token() {
		t.Errorf("token %d after %d", got.Token(), hold.Token())
	}
	put(t, got)
	put(t, hold) // on the old master, of which nobody told its client
}

// A master that misses its replicas refuses writes. Nothing is acquired, nothing is lost before its time, and when the
// replicas are back all goes on, also a release that was refused.
func TestMasterWithoutItsReplicasIsUnavailableUntilTheyAreBack(t *testing.T) {
	t.Parallel()
	srv := server.Start(t)
	rdb, name := srv.Client(), unique(t)
	client := newClient(t, srv.Client())
	hold := locked(t, client.Mutex(name, holdfast.Lease(12*time.Second)))
	gone := locked(t, client.Mutex(name+".gone", holdfast.Lease(farLease)))
	must(t, rdb.ConfigSet(t.Context(), "min-replicas-to-write", "1").Err())

	m := newClient(t, srv.Client()).Mutex(name)
	other := newClient(t, srv.Client()).Mutex(name + ".other")
	_, err := other.TryLock(within(t, 20*time.Second))
	expect(t, "TryLock", err, holdfast.ErrUnavailable)
	_, err = other.Lock(within(t, 300*time.Millisecond))
	expect(t, "Lock", err, holdfast.ErrUnavailable, context.DeadlineExceeded)
	expect(t, "Extend", hold.Extend(within(t, time.Second)), holdfast.ErrUnavailable)
	next := lockAside(within(t, time.Minute), m)
	expect(t, "Release", gone.Release(context.Background()), holdfast.ErrUnavailable)
	if err := hold.Err(); err != nil {
		t.Errorf("lost before its time: %v", err)
	}

	must(t, rdb.ConfigSet(t.Context(), "min-replicas-to-write", "0").Err())
	must(t, hold.Extend(within(t, 10*time.Second)))
	queued(t, m, 1)
	put(t, hold)
	put(t, served(t, 20*time.Second, next))
	put(t, locked(t, client.Mutex(name+".gone"))) // its release goes on
}
