package integration

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/server"
)

// replicated starts a master with a replica that is in step.
func replicated(t *testing.T) (master, replica *server.Server) {
	t.Helper()
	master = server.Start(t, server.Args("--repl-diskless-sync-delay", "0"))
	host, port, err := net.SplitHostPort(master.Addr())
	if err != nil {
		t.Fatal(err)
	}
	replica = server.Start(t, server.Args("--replicaof", host+" "+port))
	rdb := master.Client()
	eventually(t, 20*time.Second, "the replica is in step", func() bool {
		rdb.Set(t.Context(), "in step?", 1, time.Minute)
		return rdb.Wait(t.Context(), 1, 100*time.Millisecond).Val() == 1
	})
	return master, replica
}

func TestAcknowledgedHoldsLiveWhileTheReplicaDoes(t *testing.T) {
	master, replica := replicated(t)
	lock := newClient(t, master.Client()).Mutex(unique(t), holdfast.Replicas(1, 300*time.Millisecond), holdfast.Lease(2*time.Second))
	held := take(t, lock.Lock)
	if n := replica.Client().Exists(t.Context(), "holdfast:mutex:"+lock.Name()).Val(); n != 1 {
		t.Error("acquired, but the replica does not know it")
	}
	if err := held.Extend(within(t, 5*time.Second)); err != nil {
		t.Errorf("extend: %v", err)
	}
	if ended := held.Done(); !stays(ended, 3*time.Second) {
		t.Fatalf("lost although the replica acknowledges: %v", held.Err())
	}
	replica.Pause()
	select {
	case <-held.Done():
		if err := held.Err(); !errors.Is(err, holdfast.ErrLost) || !strings.Contains(err.Error(), "0 of 1 replicas") {
			t.Errorf("the hold ended with %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("renewals that no replica acknowledges keep the hold alive")
	}
	replica.Resume()
}

// stays reports whether a channel stays open for so long.
func stays(c <-chan struct{}, d time.Duration) bool {
	select {
	case <-c:
		return false
	case <-time.After(d):
		return true
	}
}

func TestAnAcquireThatNoReplicaAcknowledgesFailsAndIsUndone(t *testing.T) {
	master, replica := replicated(t)
	rdb, name := master.Client(), unique(t)
	lock := newClient(t, rdb).Mutex(name, holdfast.Replicas(1, 100*time.Millisecond))
	replica.Pause()
	for what, acquire := range map[string]func(context.Context) (*holdfast.Hold, error){"Lock": lock.Lock, "TryLock": lock.TryLock} {
		if _, err := acquire(within(t, 10*time.Second)); !errors.Is(err, holdfast.ErrUnavailable) || !strings.Contains(err.Error(), "0 of 1 replicas") {
			t.Errorf("%s: %v", what, err)
		}
		plain := newClient(t, rdb).Mutex(name)
		eventually(t, 2*time.Second, "the name is free", func() bool {
			state, err := plain.Inspect(t.Context())
			return err == nil && !state.Held()
		})
	}
	replica.Resume()
	put(t, take(t, lock.Lock))
}

// A waiter that is served by another client's release counts only what its own request had acknowledged.
func TestAWaiterIsServedWithAcknowledgement(t *testing.T) {
	master, _ := replicated(t)
	name := unique(t)
	option := holdfast.Replicas(1, 300*time.Millisecond)
	first := newClient(t, master.Client()).Mutex(name, option)
	second := newClient(t, master.Client()).Mutex(name, option)
	held := take(t, first.Lock)
	served := make(chan *holdfast.Hold, 1)
	go func() { served <- take(t, second.Lock) }()
	inQueue(t, 1, first.Inspect)
	put(t, held)
	select {
	case h := <-served:
		if h.Token() <= held.Token() {
			t.Errorf("token %d after %d", h.Token(), held.Token())
		}
		put(t, h)
	case <-time.After(5 * time.Second):
		t.Fatal("not served")
	}
}

func TestReplicasAreCheckedBeforeAnythingIsSent(t *testing.T) {
	client := newClient(t, server.Shared(t).Client())
	for _, option := range []holdfast.LockOption{
		holdfast.Replicas(0, time.Second), holdfast.Replicas(-1, time.Second), holdfast.Replicas(101, time.Second),
		holdfast.Replicas(1, 0), holdfast.Replicas(1, -time.Second), holdfast.Replicas(1, 11*time.Second),
	} {
		if _, err := client.Mutex(unique(t), option).Lock(t.Context()); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%v", err)
		}
	}
}
