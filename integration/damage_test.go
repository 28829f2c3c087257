package integration

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/fault"
	"github.com/holdfast-go/holdfast/integration/server"
)

// told fails the test unless the hold is lost within the time.
func told(t testing.TB, within time.Duration, hold *holdfast.Hold) {
	t.Helper()
	select {
	case <-hold.Done():
		expect(t, "hold", hold.Err(), holdfast.ErrLost)
	case <-time.After(within):
		t.Fatalf("%v is not told of its loss within %v", hold, within)
	}
}

// expires fails the test if a key of the library's would stay for ever.
func expires(t testing.TB, rdb *redis.Client) {
	t.Helper()
	keys := rdb.Scan(context.Background(), 0, holdfast.DefaultPrefix+"*", 1000).Iterator()
	for keys.Next(context.Background()) {
		if ttl := rdb.PTTL(context.Background(), keys.Val()).Val(); ttl == -1 {
			t.Errorf("key %q has no TTL", keys.Val())
		}
	}
	if err := keys.Err(); err != nil {
		t.Error(err)
	}
}

// key is where a mutex lives.
func key(m *holdfast.Mutex) string { return holdfast.DefaultPrefix + "mutex:" + m.Name() }

func TestLostDataIsToldAndWaitersAreServed(t *testing.T) {
	for what, damage := range map[string]func(*redis.Client, *holdfast.Mutex) error{
		"FLUSHALL": func(rdb *redis.Client, _ *holdfast.Mutex) error { return rdb.FlushAll(context.Background()).Err() },
		"DEL":      func(rdb *redis.Client, m *holdfast.Mutex) error { return rdb.Del(context.Background(), key(m)).Err() },
	} {
		t.Run(what, func(t *testing.T) {
			leavesNothing(t)
			srv := server.Start(t)
			rdb, name := srv.Client(), unique(t)
			holder := newClient(t, srv.Client()).Mutex(name, holdfast.Lease(3*time.Second))
			hold := locked(t, holder)
			clients := []*holdfast.Mutex{
				newClient(t, srv.Client()).Mutex(name, holdfast.Lease(farLease)),
				newClient(t, srv.Client()).Mutex(name, holdfast.Lease(farLease)),
				newClient(t, srv.Client()).Mutex(name, holdfast.Lease(farLease)),
			}
			var inside atomic.Int32
			var wg sync.WaitGroup
			for i := range 9 { // three of each client: one ticket in the server's queue, two behind it
				wg.Go(func() {
					err := clients[i%3].Do(within(t, 20*time.Second), func(context.Context) error {
						if n := inside.Add(1); n != 1 {
							t.Errorf("%d waiters inside", n)
						}
						inside.Add(-1)
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
			queued(t, holder, 3)
			if err := damage(rdb, holder); err != nil {
				t.Fatal(err)
			}
			told(t, promptly, hold)
			if !strings.Contains(hold.Err().Error(), "no longer knows") {
				t.Errorf("the holder was told late, or not why: %v", hold.Err())
			}
			expect(t, "release", hold.Release(context.Background()), holdfast.ErrLost)
			wg.Wait()
			free(t, holder)
			expires(t, rdb)
		})
	}
}

func TestScriptFlushDisturbsNobody(t *testing.T) {
	leavesNothing(t)
	srv := server.Start(t)
	rdb, name := srv.Client(), unique(t)
	client, other := newClient(t, srv.Client()), newClient(t, srv.Client())
	hold := locked(t, client.Mutex(name+".held", holdfast.Lease(600*time.Millisecond)))
	var cycles sync.WaitGroup
	for i := range 4 {
		m := []*holdfast.Client{client, other}[i%2].Mutex(name)
		cycles.Go(func() {
			for range 100 {
				err := m.Do(within(t, 20*time.Second), func(ctx context.Context) error {
					return m.Do(ctx, func(ctx context.Context) error { _, err := m.Inspect(ctx); return err })
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	over := make(chan struct{})
	go func() { cycles.Wait(); close(over) }()
	renewals := 0
	for deadline := hold.Deadline(); ; {
		if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if now := hold.Deadline(); now.After(deadline) {
			deadline = now
			renewals++
		}
		select {
		case <-over:
			if renewals >= 5 {
				released(t, hold)
				expires(t, rdb)
				return
			}
		default:
		}
		if hold.Err() != nil {
			t.Fatal(hold.Err())
		}
	}
}

// Somebody else's data at the key, or another version's: every call says so, and nothing is written.
func TestForeignKeyIsRefusedAndLeftAlone(t *testing.T) {
	t.Parallel()
	rdb := server.Shared(t).Client()
	for what, put := range map[string]func(ctx context.Context, p redis.Pipeliner, key string){
		"string":            func(ctx context.Context, p redis.Pipeliner, key string) { p.Set(ctx, key, "mine", 0) },
		"list":              func(ctx context.Context, p redis.Pipeliner, key string) { p.RPush(ctx, key, "mine") },
		"hash":              func(ctx context.Context, p redis.Pipeliner, key string) { p.HSet(ctx, key, "used", "0", "q", "0") },
		"hash of version 2": func(ctx context.Context, p redis.Pipeliner, key string) { p.HSet(ctx, key, "v", "2", "q", "0") },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			m := newClient(t, rdb).Mutex(unique(t), holdfast.Lease(farLease))
			ctx := within(t, 20*time.Second)
			hold := locked(t, m)
			stranger := newClient(t, rdb).Mutex(m.Name())
			blocked := lockAside(ctx, stranger)
			queued(t, m, 1)

			_, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error { // at once: a poll must not come between
				p.Del(ctx, key(m))
				put(ctx, p, key(m))
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { rdb.Del(context.Background(), key(m)) })
			before := rdb.Dump(ctx, key(m)).Val()

			_, err = newClient(t, rdb).Mutex(m.Name()).Lock(ctx)
			expect(t, "Lock", err, holdfast.ErrInvalid)
			_, err = m.Lock(hold.Context(ctx))
			expect(t, "re-entry", err, holdfast.ErrInvalid)
			_, err = m.TryLock(ctx)
			expect(t, "TryLock", err, holdfast.ErrInvalid)
			_, err = m.Inspect(ctx)
			expect(t, "Inspect", err, holdfast.ErrInvalid)
			expect(t, "ForceRelease", m.ForceRelease(ctx), holdfast.ErrInvalid)
			expect(t, "Extend", hold.Extend(ctx), holdfast.ErrInvalid)
			select {
			case r := <-blocked:
				expect(t, "a blocked Lock", r.err, holdfast.ErrInvalid)
			case <-time.After(promptly):
				t.Error("a waiter does not notice")
			}
			expect(t, "Release", hold.Release(ctx), holdfast.ErrInvalid)
			if after := rdb.Dump(ctx, key(m)).Val(); after != before || rdb.PTTL(ctx, key(m)).Val() != -1 {
				t.Errorf("the key was changed: %q, %q", before, after)
			}
		})
	}
}

func TestInvalidArgumentsAreRefusedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	proxy := fault.NewProxy(t, server.Shared(t).Addr())
	sent := proxy.Count(fault.Any())
	client, ctx := newClient(t, throughProxy(t, proxy)), within(t, 10*time.Second)
	invalid := map[string]*holdfast.Mutex{
		"an empty name":         client.Mutex(""),
		"a name of 1,025 bytes": client.Mutex(strings.Repeat("n", 1025)),
		"a name of 10 kB":       client.Mutex(strings.Repeat("n", 10_000)),
		"an endless Lease":      client.Mutex("n", holdfast.Lease(math.MaxInt64)),
		"an endless FixedLease": client.Mutex("n", holdfast.FixedLease(math.MaxInt64)),
	}
	for _, d := range []time.Duration{math.MinInt64, -1, 0, 1} {
		invalid[fmt.Sprint("Lease of ", d)] = client.Mutex("n", holdfast.Lease(d))
		invalid[fmt.Sprint("FixedLease of ", d)] = client.Mutex("n", holdfast.FixedLease(d))
		invalid[fmt.Sprint("MaxHold of ", d)] = client.Mutex("n", holdfast.MaxHold(d))
		invalid[fmt.Sprint("Wait of ", d)] = client.Mutex("n", holdfast.Wait(d))
		if _, err := holdfast.New(throughProxy(t, proxy), holdfast.Defaults(holdfast.Lease(d))); err == nil {
			t.Errorf("New accepts a default lease of %v", d)
		}
	}
	for what, m := range invalid {
		_, err := m.Lock(ctx)
		expect(t, what+": Lock", err, holdfast.ErrInvalid)
		_, err = m.TryLock(ctx)
		expect(t, what+": TryLock", err, holdfast.ErrInvalid)
		_, err = m.Inspect(ctx)
		expect(t, what+": Inspect", err, holdfast.ErrInvalid)
		expect(t, what+": ForceRelease", m.ForceRelease(ctx), holdfast.ErrInvalid)
		err = m.Do(ctx, func(context.Context) error { t.Error(what + ": Do ran"); return nil })
		expect(t, what+": Do", err, holdfast.ErrInvalid)
		if len(err.Error()) > 500 {
			t.Errorf("%s: an error of %d bytes", what, len(err.Error()))
		}
	}
	if sent.Hits() != 0 {
		t.Errorf("%d commands were sent", sent.Hits())
	}
}

func TestLongestLimitsAreNoLimits(t *testing.T) {
	t.Parallel()
	client := newClient(t, server.Shared(t).Client())
	for what, option := range map[string]holdfast.LockOption{
		"MaxHold": holdfast.MaxHold(math.MaxInt64), "Wait": holdfast.Wait(math.MaxInt64),
	} {
		m := client.Mutex(unique(t)+what, option, holdfast.FixedLease(300*time.Millisecond))
		hold := locked(t, m)
		second := lockAside(within(t, 10*time.Second), m)
		told(t, promptly, hold)
		if err := hold.Err(); !strings.Contains(err.Error(), "fixed lease") {
			t.Errorf("%s: lost for the wrong reason: %v", what, err)
		}
		released(t, served(t, promptly, second))
	}
}

func TestAnyNameWorks(t *testing.T) {
	t.Parallel()
	srv := server.Shared(t)
	rdb := srv.Client()
	holder, waiter := newClient(t, srv.Client()), newClient(t, srv.Client())
	for _, odd := range []string{
		" ", "\n", "\r\n$3\r\n", "{", "}", "{}", "{}x", "}x{", "{a}b", "x{}y{z}", ":", "::", "a b\tc", "%s%d%!", "*", "'\"\\",
		"Straße", "名前", "🔒", "\u202e", "\x00", "\xff\xfe\x00\x80", "../../etc", strings.Repeat("n", 900),
	} {
		name := odd + unique(t) + odd[:min(len(odd), 50)]
		m := holder.Mutex(name, holdfast.Lease(farLease))
		hold := locked(t, m)
		if n := rdb.Exists(t.Context(), key(m)).Val(); n != 1 {
			t.Errorf("%q: not at its key", name)
		}
		state, err := m.Inspect(within(t, 5*time.Second))
		if err != nil || state.Name != name || !state.Held() {
			t.Errorf("%q: inspected as %+v, %v", name, state, err)
		}
		_, err = waiter.Mutex(name).TryLock(within(t, 5*time.Second))
		expect(t, name, err, holdfast.ErrNotAcquired)
		next := lockAside(within(t, 20*time.Second), waiter.Mutex(name, holdfast.Lease(farLease)))
		queued(t, m, 1)
		released(t, hold)
		got := served(t, promptly, next)
		if got.Name() != name {
			t.Errorf("%q is held as %q", name, got.Name())
		}
		released(t, got)
	}
}

func TestRedisDownAtFirstUseIsUnavailable(t *testing.T) {
	leavesNothing(t)
	srv := server.Start(t)
	srv.Kill()
	m := newClient(t, srv.Client()).Mutex(unique(t))
	for _, d := range []time.Duration{300 * time.Millisecond, time.Second} {
		began := time.Now()
		_, err := m.Lock(within(t, d))
		expect(t, fmt.Sprint("Lock for ", d), err, context.DeadlineExceeded, holdfast.ErrUnavailable)
		if took := time.Since(began); took > d+promptly {
			t.Errorf("a Lock of %v took %v", d, took)
		}
	}
	_, err := m.TryLock(within(t, 20*time.Second))
	expect(t, "TryLock", err, holdfast.ErrUnavailable)
	_, err = m.Inspect(within(t, 20*time.Second))
	expect(t, "Inspect", err, holdfast.ErrUnavailable)
	expect(t, "ForceRelease", m.ForceRelease(within(t, 20*time.Second)), holdfast.ErrUnavailable)

	next := lockAside(within(t, 20*time.Second), m) // begins while it is down
	srv.Restart()
	released(t, served(t, 2*promptly, next))
	free(t, m)
}

func TestRedisDownDuringAWait(t *testing.T) {
	leavesNothing(t)
	srv := server.Start(t)
	name := unique(t)
	holder := newClient(t, srv.Client()).Mutex(name, holdfast.Lease(farLease))
	waiter := newClient(t, srv.Client()).Mutex(name, holdfast.Lease(farLease))
	hold := locked(t, holder)
	first := lockAside(within(t, 3*time.Second), waiter)
	queued(t, holder, 1)
	var behind []<-chan result // at various moments between two attempts
	for i := range 5 {
		behind = append(behind, lockAside(within(t, 2*time.Second+time.Duration(i)*200*time.Millisecond), waiter))
	}
	long := lockAside(within(t, time.Minute), waiter)
	srv.Kill()
	for _, wait := range behind {
		expect(t, "a wait behind its client's ticket", (<-wait).err, context.DeadlineExceeded, holdfast.ErrUnavailable)
	}
	expect(t, "a wait with a ticket", (<-first).err, context.DeadlineExceeded, holdfast.ErrUnavailable)
	srv.Restart() // empty: the name is free
	released(t, served(t, 2*promptly, long))
	expect(t, "Extend", hold.Extend(within(t, 10*time.Second)), holdfast.ErrLost)
	told(t, promptly, hold)
	expires(t, srv.Client())
}

func TestRedisDownDuringAHoldEndsItBeforeTheServerWould(t *testing.T) {
	leavesNothing(t)
	srv := server.Start(t)
	const lease = 2 * time.Second
	m := newClient(t, srv.Client()).Mutex(unique(t), holdfast.Lease(lease))
	hold := locked(t, m)
	first := hold.Deadline()
	eventually(t, lease, "a renewal", func() bool { return hold.Deadline().After(first) })
	before, deadline := time.Now(), hold.Deadline()
	state, err := m.Inspect(within(t, 5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	srv.Kill()
	serverEnds := before.Add(state.Holders[0].LeaseLeft).Add(hold.Deadline().Sub(deadline)) // as a renewal just then moved it
	told(t, lease+promptly, hold)
	if late := time.Since(serverEnds); late > 0 {
		t.Errorf("told %v after the server gave the name up", late)
	}
	if text := hold.Err().Error(); !strings.Contains(text, "connection refused") && !strings.Contains(text, "EOF") {
		t.Errorf("the loss does not name the last renewal's error: %v", text)
	}
	expect(t, "release", hold.Release(context.Background()), holdfast.ErrLost)
	srv.Restart()
	free(t, m)
	expires(t, srv.Client())
}

func TestFullMemoryFailsOnlyNewLocks(t *testing.T) {
	leavesNothing(t)
	srv := server.Start(t, server.Args("--maxmemory", "20mb", "--maxmemory-policy", "noeviction"))
	rdb, name := srv.Client(), unique(t)
	client, other := newClient(t, srv.Client()), newClient(t, srv.Client())
	m := client.Mutex(name, holdfast.Lease(3*time.Second)) // a busy machine loses a shorter one rightly
	hold := locked(t, m)
	next := lockAside(within(t, time.Minute), other.Mutex(name, holdfast.Lease(farLease)))
	queued(t, m, 1)
	own := client.Mutex(name+".alone", holdfast.Lease(farLease)) // nothing of it expires, which would make room
	alone := locked(t, own)
	fill(t, rdb)

	unknown := client.Mutex(name + ".free")
	_, err := unknown.Lock(within(t, 500*time.Millisecond))
	expect(t, "Lock", err, context.DeadlineExceeded, holdfast.ErrUnavailable)
	_, err = unknown.TryLock(within(t, 10*time.Second))
	expect(t, "TryLock", err, holdfast.ErrUnavailable)

	for range 3 {
		before := hold.Deadline()
		eventually(t, 30*time.Second, "a renewal or the end", func() bool { return hold.Err() != nil || hold.Deadline().After(before) })
		if err := hold.Err(); err != nil {
			t.Fatal(err)
		}
	}
	deep := []*holdfast.Hold{alone}
	for range 3 {
		h, err := own.Lock(alone.Context(within(t, promptly)))
		if err != nil {
			t.Fatalf("re-entry: %v", err)
		}
		deep = append(deep, h)
	}
	for _, h := range append(deep, hold) {
		released(t, h)
	}
	got := served(t, promptly, next)
	if err := got.Extend(within(t, 5*time.Second)); err != nil {
		t.Error(err)
	}
	if err := m.ForceRelease(within(t, 5*time.Second)); err != nil {
		t.Error(err)
	}
	told(t, promptly, got)

	waits := lockAside(within(t, 20*time.Second), unknown)
	if err := rdb.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	released(t, served(t, promptly, waits))
	expires(t, rdb)
}

// fill uses up the server's memory: what is left then is less than any lock needs.
func fill(t *testing.T, rdb *redis.Client) {
	t.Helper()
	value := bytes.Repeat([]byte("x"), 1<<20)
	for i := 0; len(value) > 0; i++ {
		err := rdb.Set(t.Context(), fmt.Sprint("ballast", i), value, 0).Err()
		switch {
		case err == nil:
		case strings.HasPrefix(err.Error(), "OOM"):
			value = value[:len(value)/2]
		default:
			t.Fatal(err)
		}
	}
	// Memory that clients' buffers take or give back must not decide the test.
	if err := rdb.ConfigSet(t.Context(), "maxmemory", "2mb").Err(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.Set(t.Context(), "more", "x", 0).Err(); err == nil || !strings.HasPrefix(err.Error(), "OOM") {
		t.Fatalf("the memory is not full: %v", err)
	}
}

func TestForceReleaseTellsTheHolderAndServesTheWaiter(t *testing.T) {
	t.Parallel()
	srv, name := server.Shared(t), unique(t)
	client := newClient(t, srv.Client(), slowPolls())
	m := client.Mutex(name, holdfast.Lease(farLease))
	other := newClient(t, srv.Client(), slowPolls()).Mutex(name, holdfast.Lease(farLease))

	first := locked(t, other) // has m's client wait, and so subscribe: that is how it will be told
	mine := lockAside(within(t, 20*time.Second), m)
	queued(t, m, 1)
	released(t, first)
	hold := served(t, promptly, mine)
	inner, err := m.Lock(hold.Context(within(t, 10*time.Second)))
	if err != nil {
		t.Fatal(err)
	}
	next := lockAside(within(t, 20*time.Second), other)
	queued(t, m, 1)

	if err := newClient(t, srv.Client()).Mutex(name).ForceRelease(within(t, 5*time.Second)); err != nil {
		t.Fatal(err)
	}
	got := served(t, promptly, next)
	for _, h := range []*holdfast.Hold{hold, inner} {
		told(t, promptly, h)
		if !strings.Contains(h.Err().Error(), "force") {
			t.Errorf("not told why: %v", h.Err())
		}
		expect(t, "extend", h.Extend(within(t, time.Second)), holdfast.ErrLost)
		expect(t, "release", h.Release(context.Background()), holdfast.ErrLost)
	}
	_, err = m.Lock(hold.Context(within(t, 5*time.Second)))
	expect(t, "re-entry", err, holdfast.ErrLost)
	if got.Token() <= hold.Token() {
		t.Errorf("token %d after %d", got.Token(), hold.Token())
	}
	owned(t, other, got)
	released(t, got)
}

// A client that never waited has no subscription; its next renewal tells it.
func TestForceReleaseIsToldByTheRenewalWithoutASubscription(t *testing.T) {
	t.Parallel()
	srv, name := server.Shared(t), unique(t)
	hold := locked(t, newClient(t, srv.Client()).Mutex(name, holdfast.Lease(3*time.Second)))
	m := newClient(t, srv.Client()).Mutex(name)
	if err := m.ForceRelease(within(t, 5*time.Second)); err != nil {
		t.Fatal(err)
	}
	got := locked(t, m)
	told(t, promptly, hold)
	owned(t, m, got)
	if err := newClient(t, srv.Client()).Mutex(name + ".idle").ForceRelease(within(t, 5*time.Second)); err != nil {
		t.Errorf("of an idle name: %v", err)
	}
}

func TestMaxHoldEndsAHold(t *testing.T) {
	t.Parallel()
	srv, name := server.Shared(t), unique(t)
	const limit = time.Second
	began := time.Now()
	hold := locked(t, newClient(t, srv.Client()).Mutex(name, holdfast.Lease(farLease), holdfast.MaxHold(limit)))
	next := lockAside(within(t, 20*time.Second), newClient(t, srv.Client()).Mutex(name))
	told(t, limit+promptly, hold)
	if took := time.Since(began); took < limit {
		t.Errorf("ended after %v", took)
	}
	if !strings.Contains(hold.Err().Error(), "MaxHold") {
		t.Errorf("not told why: %v", hold.Err())
	}
	released(t, served(t, promptly, next)) // it was given back: the server's lease lasts on
}

func TestWaitLimitEndsTheWaitButNotTheWork(t *testing.T) {
	t.Parallel()
	srv, name := server.Shared(t), unique(t)
	hold := locked(t, newClient(t, srv.Client()).Mutex(name, holdfast.Lease(farLease)))
	const limit = 300 * time.Millisecond
	m := newClient(t, srv.Client()).Mutex(name, holdfast.Wait(limit))
	began := time.Now()
	_, err := m.Lock(within(t, 30*time.Second))
	expect(t, "Lock", err, holdfast.ErrNotAcquired)
	if took := time.Since(began); took < limit || took > limit+promptly {
		t.Errorf("it waited %v", took)
	}
	if strings.Contains(err.Error(), "this client") {
		t.Errorf("another client holds it: %v", err)
	}
	eventually(t, promptly, "an empty queue", func() bool { return waiting(t, m.Inspect) == 0 })
	released(t, hold)
	err = m.Do(within(t, 30*time.Second), func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(2 * limit):
			return nil
		}
	})
	if err != nil {
		t.Errorf("Do: %v", err)
	}
}

// The likeliest mistake: to lock again without the context of the hold.
func TestWaitForOneselfSaysSo(t *testing.T) {
	t.Parallel()
	m := newClient(t, server.Shared(t).Client()).Mutex(unique(t), holdfast.Wait(200*time.Millisecond))
	hold := locked(t, m)
	_, err := m.Lock(within(t, 10*time.Second))
	expect(t, "Wait", err, holdfast.ErrNotAcquired)
	_, second := m.Lock(within(t, 100*time.Millisecond))
	expect(t, "context", second, context.DeadlineExceeded)
	for _, err := range []error{err, second} {
		if err == nil || !strings.Contains(err.Error(), "this client has held it") {
			t.Errorf("no hint in: %v", err)
		}
	}
	inner, err := m.Lock(hold.Context(context.Background()))
	if err != nil {
		t.Fatalf("as the hint says: %v", err)
	}
	released(t, inner)
	released(t, hold)
}

func TestAbandonedHoldIsReportedOnce(t *testing.T) {
	t.Parallel()
	var log logbook
	m := newClient(t, server.Shared(t).Client(), log.option()).Mutex(unique(t), holdfast.Lease(300*time.Millisecond))
	func() { locked(t, m) }() // looked for from its first renewal on
	eventually(t, 10*time.Second, "a warning", func() bool { runtime.GC(); return log.warnings("without Release") > 0 })
	free(t, newClient(t, server.Shared(t).Client()).Mutex(m.Name()+".released"))
	for range 5 {
		runtime.GC()
	}
	if n := log.warnings(""); n != 1 || !strings.Contains(log.text(), m.Name()) {
		t.Errorf("%d warnings, want one that names the lock:\n%s", n, log.text())
	}
}
