package integration

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/server"
)

// Faults that lose what Redis had acknowledged: nothing can keep a second holder out then, but the first one is told by
// its next renewal, and its writes are refused from the second one's first write on.

// lossLease has a renewal every second or sooner.
const lossLease = 3 * time.Second

// resource is what a lock protects: it refuses tokens smaller than the greatest that it has seen.
type resource struct {
	mu      sync.Mutex
	highest int64
}

func (r *resource) write(token int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.highest = max(r.highest, token)
	return token == r.highest
}

// contest is one name with a holder, who writes for as long as it believes in its hold, and a waiter, who does so from
// its grant on.
type contest struct {
	kind     string
	guarded  resource
	hold     *holdfast.Hold
	waiter   chan result
	newer    bool // the waiter's first write was accepted; set before waiter is served
	writer   sync.WaitGroup
	refused  int           // writes of the holder: two believed in the name then
	overlap  time.Duration // for how long
	accepted int
}

// contests begins one for every primitive that excludes.
func contests(t *testing.T, srv *server.Server) []*contest {
	t.Helper()
	mine, other, name := newClient(t, srv.Client()), newClient(t, srv.Client()), unique(t)
	var all []*contest
	for _, kind := range []string{"mutex", "fair", "write", "sem1"} {
		c := &contest{kind: kind, waiter: make(chan result, 1)}
		c.hold = take(t, acquirer(mine, kind, name, holdfast.Lease(lossLease)))
		wait := acquirer(other, kind, name, holdfast.Lease(lossLease))
		go func() {
			h, err := wait(within(t, 30*time.Second))
			c.newer = err == nil && c.guarded.write(h.Token())
			c.waiter <- result{h, err}
		}()
		all = append(all, c)
	}
	for _, c := range all {
		inQueue(t, 1, inspector(mine, c.kind, name))
		c.writer.Go(c.write)
	}
	return all
}

// inspector is the Inspect of a kind that acquirer knows.
func inspector(client *holdfast.Client, kind, name string) func(context.Context) (holdfast.State, error) {
	switch kind {
	case "mutex":
		return client.Mutex(name).Inspect
	case "fair":
		return client.FairLock(name).Inspect
	case "read", "write":
		return client.RWLock(name).Inspect
	}
	return func(ctx context.Context) (holdfast.State, error) {
		usage, err := client.Semaphore(name, 1).Inspect(ctx)
		return usage.State, err
	}
}

func (c *contest) write() {
	var first time.Time
	for ; c.hold.Valid(); time.Sleep(time.Millisecond) {
		if c.guarded.write(c.hold.Token()) {
			c.accepted++
			continue
		}
		c.refused++
		if first.IsZero() {
			first = time.Now()
		}
		c.overlap = time.Since(first)
	}
}

// lost makes sure that a contest ends well after its name was lost.
func (c *contest) lost(t *testing.T) {
	t.Helper()
	next := <-c.waiter
	if next.err != nil {
		t.Fatalf("%s: the waiter: %v", c.kind, next.err)
	}
	if !c.newer {
		t.Errorf("%s: the new holder is refused: token %d after %d", c.kind, next.hold.Token(), c.hold.Token())
	}
	select {
	case <-c.hold.Done():
	case <-time.After(10 * time.Second):
		t.Fatalf("%s: not told", c.kind)
	}
	c.writer.Wait()
	expect(t, c.kind, c.hold.Err(), holdfast.ErrLost)
	if !strings.Contains(c.hold.Err().Error(), "no longer knows") {
		t.Errorf("%s: not told by a renewal: %v", c.kind, c.hold.Err())
	}
	expect(t, c.kind, c.hold.Release(context.Background()), holdfast.ErrLost)
	if err := next.hold.Err(); err != nil {
		t.Errorf("%s: the new holder: %v", c.kind, err)
	}
	t.Logf("%s: %d writes accepted, then two believed for %v: %d stale writes refused", c.kind, c.accepted, c.overlap.Round(time.Millisecond), c.refused)
	put(t, next.hold)
}

// kept makes sure that a contest goes on as if nothing had happened.
func (c *contest) kept(t *testing.T) {
	t.Helper()
	if err := c.hold.Extend(within(t, 10*time.Second)); err != nil {
		t.Errorf("%s: %v", c.kind, err)
	}
	put(t, c.hold)
	c.writer.Wait()
	next := served(t, 10*time.Second, c.waiter)
	if c.refused > 0 || !c.newer {
		t.Errorf("%s: %d writes refused, token %d after %d", c.kind, c.refused, next.Token(), c.hold.Token())
	}
	put(t, next)
}

// evict takes the memory away for a moment.
func evict(t *testing.T, srv *server.Server) {
	t.Helper()
	rdb := srv.Client()
	set := func(to string) {
		if err := rdb.ConfigSet(t.Context(), "maxmemory", to).Err(); err != nil {
			t.Fatal(err)
		}
	}
	set("1")
	eventually(t, 10*time.Second, "everything is evicted", func() bool {
		_ = rdb.Set(t.Context(), "ballast", 1, 0).Err() // refused, but it has the server look for room
		return rdb.Exists(t.Context(), "ballast").Val() == 0 && len(rdb.Keys(t.Context(), holdfast.DefaultPrefix+"*").Val()) == 0
	})
	set("0")
}

func TestLostDataLetsNoStaleWriteThrough(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		args   []string
		damage func(t *testing.T, srv *server.Server)
	}{
		"FLUSHALL": {damage: func(t *testing.T, srv *server.Server) {
			if err := srv.Client().FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}},
		"eviction of all keys":          {[]string{"--maxmemory-policy", "allkeys-lru"}, evict},
		"eviction of keys with TTL":     {[]string{"--maxmemory-policy", "volatile-ttl"}, evict},
		"a restart without persistence": {damage: func(_ *testing.T, srv *server.Server) { srv.Restart() }},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			srv := server.Start(t, server.Args(c.args...))
			all := contests(t, srv)
			c.damage(t, srv)
			for _, c := range all {
				c.lost(t)
			}
			expires(t, srv.Client())
		})
	}
}

// kill -9 loses nothing of an append-only file: it is written before the client is answered. A power cut loses what
// was not yet flushed to the disk, by default up to a second's: here, all since a copy.
func TestRestartFromAnAppendOnlyFile(t *testing.T) {
	t.Parallel()
	persistent := func(t *testing.T) (*server.Server, string) {
		dir := t.TempDir()
		return server.Start(t, server.Args("--appendonly", "yes", "--appendfsync", "everysec", "--dir", dir)), dir
	}
	t.Run("of a killed server keeps every hold", func(t *testing.T) {
		t.Parallel()
		srv, _ := persistent(t)
		all := contests(t, srv)
		srv.Restart()
		for _, c := range all {
			c.kept(t)
		}
		expires(t, srv.Client())
	})
	t.Run("after a power cut tells those it has lost", func(t *testing.T) {
		t.Parallel()
		srv, dir := persistent(t)
		must(t, srv.Client().Set(t.Context(), "before", 1, 0).Err())
		old := t.TempDir()
		must(t, os.CopyFS(old, os.DirFS(dir)))
		all := contests(t, srv)
		srv.Kill()
		must(t, os.RemoveAll(dir))
		must(t, os.CopyFS(dir, os.DirFS(old)))
		srv.Restart()
		if n := srv.Client().Exists(t.Context(), "before").Val(); n != 1 {
			t.Error("what was flushed is lost as well")
		}
		for _, c := range all {
			c.lost(t)
		}
	})
}

// LOADING is no answer: who asks meanwhile waits, and who holds goes on.
func TestServerThatLoadsIsWaitedFor(t *testing.T) {
	t.Parallel()
	srv := server.Start(t, server.Args("--appendonly", "yes", "--dir", t.TempDir(), "--key-load-delay", "500"))
	rdb := srv.Client(func(o *redis.Options) { o.MaxRetries = -1 })
	pipe := rdb.Pipeline()
	for i := range 6000 {
		pipe.Set(t.Context(), fmt.Sprint("ballast", i), "x", 0)
	}
	_, err := pipe.Exec(t.Context())
	must(t, err)
	m := newClient(t, srv.Client()).Mutex(unique(t), holdfast.Lease(30*time.Second))
	hold := locked(t, m)
	restarted := make(chan struct{})
	go func() { defer close(restarted); srv.Restart() }()
	eventually(t, 20*time.Second, "the server loads", func() bool {
		return redis.HasErrorPrefix(rdb.Get(t.Context(), "ballast0").Err(), "LOADING")
	})
	next := lockAside(within(t, 60*time.Second), newClient(t, srv.Client()).Mutex(m.Name()))
	<-restarted
	put(t, hold) // its renewals were refused, and tried again
	put(t, served(t, 20*time.Second, next))
}

// must fails the test on trouble.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
