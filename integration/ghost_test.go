package integration

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/internal/config"
)

// A server that went back knows of holds and tickets that were given back since: ghosts. A client ends its own when it
// waits for the name.

// ghostWindow has clients poll every 100 ms.
const ghostWindow = 300 * time.Millisecond

func quickPolls(c *config.Config) { c.Window = ghostWindow }

// A snapshot is what a name's key was at some time.
type nameSnapshot struct {
	rdb *redis.Client
	key string
	was string
	ttl time.Duration
}

func snapshotOf(t testing.TB, rdb *redis.Client, key string) nameSnapshot {
	t.Helper()
	was, err := rdb.Dump(t.Context(), key).Result()
	must(t, err)
	ttl, err := rdb.PTTL(t.Context(), key).Result()
	must(t, err)
	return nameSnapshot{rdb, key, was, ttl}
}

// restore has the server go back to it.
func (s nameSnapshot) restore(t testing.TB) {
	t.Helper()
	must(t, s.rdb.RestoreReplace(t.Context(), s.key, s.ttl, s.was).Err())
}

// holders are the owners that the server knows as such, and waiters those in the queue.
func ownersOf(t testing.TB, inspect func(context.Context) (holdfast.State, error)) (holders, waiters []string) {
	t.Helper()
	state, err := inspect(within(t, 5*time.Second))
	must(t, err)
	for _, h := range state.Holders {
		holders = append(holders, h.Owner)
	}
	for _, w := range state.Queue {
		waiters = append(waiters, w.Owner)
	}
	return holders, waiters
}

// The hold that came back lasts for a minute more; a client that ends it is there long before.
func TestGhostOfAHoldIsEndedByItsWaitingClient(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"mutex", "fair", "write", "sem1"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			rdb, name := server.Shared(t).Client(), unique(t)
			client := newClient(t, rdb, quickPolls)
			lock := acquirer(client, kind, name, holdfast.Lease(time.Minute))
			h := take(t, lock)
			before := snapshotOf(t, rdb, keyOfKind(kind, name))
			put(t, h)
			before.restore(t)
			began := time.Now()
			again := take(t, lock)
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("the ghost was in the way for %v", took)
			}
			if again.Token() <= h.Token() {
				t.Errorf("token %d after %d", again.Token(), h.Token())
			}
			holders, _ := ownersOf(t, inspector(client, kind, name))
			if len(holders) != 1 {
				t.Errorf("holders: %v", holders)
			}
			put(t, again)
			fades(t, rdb, before.key)
		})
	}
}

func keyOfKind(kind, name string) string {
	switch kind {
	case "write", "read":
		kind = "rw"
	case "sem1", "sem3":
		kind = "sem"
	}
	return holdfast.DefaultPrefix + kind + ":" + name
}

// A ticket that came back is in front of everybody. Its client counts as alive while it polls for another one.
func TestGhostOfATicketIsEndedByItsWaitingClient(t *testing.T) {
	t.Parallel()
	rdb, name := server.Shared(t).Client(), unique(t)
	client, other := newClient(t, rdb, quickPolls), newClient(t, rdb, quickPolls)
	lock := other.FairLock(name, holdfast.Lease(time.Minute))
	mine := client.FairLock(name, holdfast.Lease(time.Minute))
	h := take(t, lock.Lock)
	ctx, giveUp := context.WithCancel(within(t, 30*time.Second))
	gone := make(chan error, 1)
	go func() {
		_, err := mine.Lock(ctx)
		gone <- err
	}()
	inQueue(t, 1, lock.Inspect)
	before := snapshotOf(t, rdb, keyOfKind("fair", name))
	_, ghosts := ownersOf(t, lock.Inspect)
	giveUp()
	expect(t, "the wait", <-gone, context.Canceled)
	inQueue(t, 0, lock.Inspect)
	before.restore(t)

	waited := make(chan result, 1)
	go func() {
		h, err := mine.Lock(within(t, 30*time.Second))
		waited <- result{h, err}
	}()
	eventually(t, 10*time.Second, "the ghost is gone", func() bool {
		_, waiters := ownersOf(t, lock.Inspect)
		return len(waiters) == 1 && waiters[0] != ghosts[0]
	})
	if !h.Valid() {
		t.Errorf("the holder: %v", h.Err())
	}
	put(t, h)
	put(t, served(t, 10*time.Second, waited))
	fades(t, rdb, keyOfKind("fair", name))
}

// Whoever holds is known to its client, and is left alone, whatever that looks for.
func TestSearchForGhostsSparesTheLiving(t *testing.T) {
	t.Parallel()
	rdb, name := server.Shared(t).Client(), unique(t)
	client := newClient(t, rdb, quickPolls)
	read := func(ctx context.Context) (*holdfast.Hold, error) {
		return client.RWLock(name, holdfast.Lease(time.Minute)).RLock(ctx)
	}
	first, ghost, second := take(t, read), take(t, read), take(t, read)
	before := snapshotOf(t, rdb, keyOfKind("rw", name))
	put(t, ghost)
	before.restore(t)
	rw := client.RWLock(name, holdfast.Lease(time.Minute))
	waited := make(chan result, 1)
	go func() {
		h, err := rw.Lock(within(t, 30*time.Second))
		waited <- result{h, err}
	}()
	eventually(t, 10*time.Second, "the ghost is gone", func() bool {
		holders, waiters := ownersOf(t, rw.Inspect)
		return len(holders) == 2 && len(waiters) == 1
	})
	for _, h := range []*holdfast.Hold{first, second} {
		if !h.Valid() {
			t.Errorf("%v: %v", h, h.Err())
		}
		put(t, h) // the server knows it, or this fails
	}
	put(t, served(t, 10*time.Second, waited))
}

// What another client left is that one's to end.
func TestGhostOfAnotherClientIsLeftToIt(t *testing.T) {
	t.Parallel()
	rdb, name := server.Shared(t).Client(), unique(t)
	stranger := newClient(t, rdb, quickPolls).Mutex(name, holdfast.Lease(time.Minute))
	m := newClient(t, rdb, quickPolls).Mutex(name)
	h := locked(t, stranger)
	before := snapshotOf(t, rdb, key(m))
	released(t, h)
	before.restore(t)
	waited := lockAside(within(t, 30*time.Second), m)
	queued(t, m, 1)
	select {
	case r := <-waited:
		t.Fatalf("got past a hold of another client's: %v, %v", r.hold, r.err)
	case <-time.After(5 * ghostWindow):
	}
	theirs := lockAside(within(t, 30*time.Second), stranger) // and now its own client waits, too
	released(t, served(t, 10*time.Second, waited))
	released(t, served(t, 10*time.Second, theirs))
	fades(t, rdb, key(m))
}

// A mutex that was passed on comes back as its tenure was, whichever hold of it was the last.
func TestGhostOfAPassedTenureIsEnded(t *testing.T) {
	t.Parallel()
	rdb := server.Shared(t).Client()
	m := newClient(t, rdb, quickPolls).Mutex(unique(t), holdfast.Lease(time.Minute))
	first := locked(t, m)
	next := behind(within(t, 10*time.Second), t, m)
	before := snapshotOf(t, rdb, key(m))
	released(t, first)
	second := served(t, 10*time.Second, next)
	released(t, second)
	before.restore(t)
	third := served(t, 5*time.Second, lockAside(within(t, 10*time.Second), m))
	if third.Token() <= second.Token() {
		t.Errorf("token %d after %d", third.Token(), second.Token())
	}
	released(t, third)
	fades(t, rdb, key(m))
}
