package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/server"
)

// Whatever comes in: no panic, no hold that the server does not know, and an error that says what is wrong. Run with
// go test -fuzz FuzzNames and so on; without it the seeds are tests.

// known fails unless a hold is what the server has, or the error is one of the documented ones.
func known(t *testing.T, inspect func(context.Context) (holdfast.State, error), hold *holdfast.Hold, err error) {
	t.Helper()
	if err != nil {
		typed := []error{holdfast.ErrInvalid, holdfast.ErrNotAcquired, holdfast.ErrUnavailable, context.DeadlineExceeded}
		if hold != nil || !slices.ContainsFunc(typed, func(want error) bool { return errors.Is(err, want) }) {
			t.Fatalf("%v with the error %v", hold, err)
		}
		return
	}
	state, err := inspect(within(t, 10*time.Second))
	must(t, err)
	if hold.Valid() && !holds(state, hold.Token()) {
		t.Fatalf("the server does not know of %v: %+v", hold, state)
	}
}

func holds(state holdfast.State, token int64) bool {
	for _, h := range state.Holders {
		if h.Token == token {
			return true
		}
	}
	return false
}

func FuzzNames(f *testing.F) {
	for _, name := range []string{"", "n", "{}", "}{", "{a}b", "\x00", "\xff", "a:b", "inbox:x", strings.Repeat("n", 1024), strings.Repeat("n", 1025)} {
		f.Add(name)
	}
	client, rdb, run := newClient(f, server.Shared(f).Client()), server.Shared(f).Client(), unique(f)
	f.Fuzz(func(t *testing.T, name string) {
		if len(name) > 0 && len(name) < 900 {
			name += run // names that another run holds
		}
		m := client.Mutex(name, holdfast.Wait(time.Second))
		hold, err := m.Lock(within(t, 10*time.Second))
		known(t, m.Inspect, hold, err)
		if invalid := len(name) == 0 || len(name) > 1024; invalid != errors.Is(err, holdfast.ErrInvalid) {
			t.Fatalf("%q: %v", name, err)
		}
		if hold == nil {
			return
		}
		if hold.Name() != name || rdb.Exists(t.Context(), key(m)).Val() != 1 {
			t.Fatalf("%q is held as %q", name, hold.Name())
		}
		put(t, hold)
	})
}

func FuzzOptions(f *testing.F) {
	f.Add(int64(time.Second), int64(time.Second), int64(time.Second), 1, 3, "holdfast:", "host")
	f.Add(int64(0), int64(-1), int64(1), 0, 0, "", "")
	f.Add(int64(1<<63-1), int64(1<<63-1), int64(1<<63-1), 1<<31, 1<<31, "p", "a b")
	f.Add(int64(-1<<63), int64(-1<<63), int64(-1<<63), -1, -1, strings.Repeat("p", 257), strings.Repeat("l", 20))
	f.Add(int64(100*time.Millisecond), int64(time.Millisecond), int64(100*time.Millisecond), 2, 1, "{x}", "a.b-c_d")
	rdb, run := server.Shared(f).Client(), unique(f)
	f.Fuzz(func(t *testing.T, lease, wait, maxHold int64, n, capacity int, prefix, label string) {
		client, err := holdfast.New(rdb, holdfast.Prefix(prefix), holdfast.Label(label), holdfast.Logger(nil))
		if err != nil {
			expect(t, "New", err, holdfast.ErrInvalid)
			return
		}
		defer func() { must(t, client.Close(within(t, 10*time.Second))) }()
		s := client.Semaphore(run+fmt.Sprint(lease, wait, capacity), capacity,
			holdfast.Lease(time.Duration(lease)), holdfast.Wait(time.Duration(wait)), holdfast.MaxHold(time.Duration(maxHold)))
		hold, err := s.Acquire(within(t, 10*time.Second), n)
		if err != nil {
			if !errors.Is(err, holdfast.ErrInvalid) && !errors.Is(err, holdfast.ErrNotAcquired) {
				t.Fatal(err)
			}
			return
		}
		if n < 1 || n > capacity {
			t.Fatalf("%d of %d", n, capacity)
		}
		if err := hold.Release(context.Background()); err != nil && !errors.Is(err, holdfast.ErrLost) { // short leases end
			t.Fatal(err)
		}
	})
}

// Anything may be in the fields of a hash that says it is holdfast's.
func FuzzJunkInTheHash(f *testing.F) {
	for _, field := range []string{"used", "exp", "seq", "q", "head", "tail", "vt", "lt", "xt", "h:a:1", "w:1", "t:a:1", "c:a", "x:a:1", "h:", "zzz", ""} {
		for _, value := range []string{"", "0", "1", "-", "1 1 99999999999999 5", "1 1 1 1", "a:1", "\x00\xff"} {
			f.Add(field, value, "q", "7")
		}
	}
	client, rdb, run := newClient(f, server.Shared(f).Client()), server.Shared(f).Client(), unique(f)
	f.Fuzz(func(t *testing.T, field, value, field2, value2 string) {
		damaged(t, client, rdb, run, field, value, field2, value2)
	})
}

// damaged uses a name in whose hash somebody wrote.
func damaged(t *testing.T, client *holdfast.Client, rdb *redis.Client, name, field, value, field2, value2 string) {
	if field == "v" || field2 == "v" {
		t.Skip("another version's")
	}
	m := client.Mutex(name, holdfast.Lease(time.Second), holdfast.Wait(20*time.Millisecond))
	must(t, rdb.Del(t.Context(), key(m)).Err())
	must(t, rdb.HSet(t.Context(), key(m), "v", "1", field, value, field2, value2).Err())
	defer func() { rdb.Del(context.Background(), key(m)) }()
	for _, acquire := range []func(context.Context) (*holdfast.Hold, error){m.TryLock, m.Lock} {
		hold, err := acquire(within(t, 10*time.Second))
		known(t, m.Inspect, hold, err)
		if hold == nil {
			continue
		}
		if err := hold.Release(context.Background()); err != nil && !errors.Is(err, holdfast.ErrLost) {
			t.Fatal(err)
		}
	}
	if ttl := rdb.PTTL(t.Context(), key(m)).Val(); ttl == -1 {
		t.Fatalf("the key stays for ever: %v", rdb.HGetAll(t.Context(), key(m)).Val())
	}
	must(t, m.ForceRelease(within(t, 10*time.Second)))
}

// Anybody may publish: what the inbox of a waiting client brings makes no hold and breaks none.
func FuzzJunkInTheInbox(f *testing.F) {
	for _, junk := range []string{
		"", " ", "grant", "revoked", "grant CLIENT:1", "revoked CLIENT:x", "revoked :1", "grant CLIENT:999999 5 1 1000 0 FOREIGN",
		"grant CLIENT:999999 9223372036854775807 1 2 0 " + "holdfast:mutex:x", "grant CLIENT:2 0 1 2 0 KEY", "grant CLIENT:2 1 5 2 0 KEY",
		"grant CLIENT:2 -5 1 1000 0 KEY", "grant CLIENT:2 1 1 99999999999999 0 KEY", "grant CLIENT:18446744073709551616 1 1 2 0 KEY",
		strings.Repeat("x", 100_000), "\x00\xff", "grant  CLIENT:2 1 1 2 0 KEY",
	} {
		f.Add(junk)
	}
	rdb, run := server.Shared(f).Client(), unique(f)
	f.Fuzz(func(t *testing.T, junk string) {
		srv := server.Shared(t)
		holder, waiting := newClient(t, srv.Client()), newClient(t, srv.Client())
		m := holder.Mutex(run, holdfast.Lease(farLease))
		hold := locked(t, m)
		next := lockAside(within(t, 30*time.Second), waiting.Mutex(run, holdfast.Lease(farLease)))
		queued(t, m, 1)
		junk = strings.NewReplacer("CLIENT", waiting.ID(), "KEY", key(m), "FOREIGN", "foreign-"+run).Replace(junk)
		eventually(t, 10*time.Second, "it is heard", func() bool {
			return rdb.Publish(t.Context(), holdfast.DefaultPrefix+"inbox:"+waiting.ID(), junk).Val() == 1
		})
		select {
		case r := <-next:
			t.Fatalf("%q made the waiter return %v, %v", junk, r.hold, r.err)
		case <-time.After(5 * time.Millisecond):
		}
		must(t, hold.Extend(within(t, 10*time.Second)))
		put(t, hold)
		put(t, served(t, 10*time.Second, next))
		if rdb.Exists(t.Context(), "foreign-"+run).Val() != 0 {
			t.Fatal("a foreign key was made")
		}
	})
}
