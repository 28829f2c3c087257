package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/fault"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/internal/scripts"
)

const (
	// soon is the second in which what is left behind must be undone, and as much again for a busy machine. What
	// else would end it, a lease, takes at least ten times as long.
	soon = 2 * time.Second
	// impatient is the ReadTimeout of clients that are to take a late answer for a lost one.
	impatient = 300 * time.Millisecond
	// crowd is how many subtests together runs at a time.
	crowd = 24
)

func script(name string) fault.Match { return fault.Sha(scripts.SHAs()[name]) }

// together runs a subtest for each case, many at once whatever -parallel says: they wait more than they work.
func together[C fmt.Stringer](t *testing.T, cases []C, run func(*testing.T, C)) {
	t.Helper()
	var wg sync.WaitGroup
	free := make(chan struct{}, crowd)
	for _, c := range cases {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			t.Run(c.String(), func(t *testing.T) { run(t, c) })
		})
	}
	wg.Wait()
}

// trouble is what befalls n requests of one kind.
type trouble struct {
	name    string
	n       int
	late    time.Duration // 0: the reply is lost
	close   bool          // along with the connection
	outlive bool          // late: run after the hold has been released, not before
}

// troubles are the fates of requests that do go through at last.
var troubles = []trouble{
	{name: "reply lost once", n: 1},
	{name: "reply lost twice", n: 2},
	{name: "reply lost three times", n: 3},
	{name: "cut off once", n: 1, close: true},
	{name: "cut off twice", n: 2, close: true},
	{name: "cut off three times", n: 3, close: true},
	{name: "once half a second late", n: 1, late: 500 * time.Millisecond},
	{name: "twice two seconds late", n: 2, late: 2 * time.Second},
	{name: "three times two seconds late after all is over", n: 3, late: 2 * time.Second, outlive: true},
	{name: "once five seconds late after all is over", n: 1, late: 5 * time.Second, outlive: true},
}

// put makes the trouble for requests that match.
func (d trouble) put(p *fault.Proxy, match fault.Match) *fault.Rule {
	switch {
	case d.late > 0:
		return p.DelayRequests(d.n, d.late, match)
	case d.close:
		return p.DropRepliesAndClose(d.n, match)
	}
	return p.DropReplies(d.n, match)
}

// faultCase is one combination of the table.
type faultCase struct {
	request string
	run     func(*testing.T, *scene, trouble)
	trouble
	plain bool // a client with MaxRetries -1: go-redis itself must make no difference
}

func (c faultCase) String() string {
	retries := "default client"
	if c.plain {
		retries = "MaxRetries -1"
	}
	return c.request + "/" + c.name + "/" + retries
}

// scene is a name, a client whose requests get into trouble, and a stranger whose do not.
type scene struct {
	proxy    *fault.Proxy
	client   *holdfast.Client
	mine     *holdfast.Mutex
	stranger *holdfast.Mutex
	rdb      *redis.Client // the stranger's
	key      string
}

func newScene(t *testing.T, plain bool, options ...holdfast.LockOption) *scene {
	t.Helper()
	srv := server.Shared(t)
	s := &scene{proxy: fault.NewProxy(t, srv.Addr()), rdb: srv.Client()}
	s.client = newClient(t, srv.Client(func(o *redis.Options) {
		o.Addr, o.ReadTimeout = s.proxy.Addr(), impatient
		if plain {
			o.MaxRetries = -1
		}
	}))
	name := unique(t)
	s.key = "holdfast:mutex:" + name
	s.mine = s.client.Mutex(name, options...)
	s.stranger = newClient(t, s.rdb).Mutex(name)
	return s
}

func (s *scene) lock(t *testing.T, ctx context.Context) *holdfast.Hold {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	held, err := s.mine.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return held
}

// over waits until the server has executed every request of a rule.
func (s *scene) over(t *testing.T, rule *fault.Rule, n int) {
	t.Helper()
	eventually(t, 20*time.Second, "every request in trouble is executed", func() bool { return rule.Answered() == n })
	if rule.Hits() != n {
		t.Errorf("%d requests got into trouble instead of %d", rule.Hits(), n)
	}
}

// release ends a hold: once is enough.
func (s *scene) release(t *testing.T, held *holdfast.Hold) {
	t.Helper()
	if err := held.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
	if err := held.Release(t.Context()); !errors.Is(err, holdfast.ErrReleased) {
		t.Errorf("second release: %v", err)
	}
}

// free makes sure that nobody holds the name or waits for it any more, soon at the latest.
func (s *scene) free(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(soon); ; time.Sleep(5 * time.Millisecond) {
		state, err := s.stranger.Inspect(within(t, 10*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if !state.Held() && len(state.Queue) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("still in use: %+v", state)
		}
	}
}

// end is how every scene ends: all requests in trouble have run, the name is free, anybody can have it, and the
// key is about to go.
func (s *scene) end(t *testing.T, rule *fault.Rule, n int) {
	t.Helper()
	s.free(t)
	s.over(t, rule, n)
	s.free(t)
	held, err := s.stranger.TryLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	undisturbed(t, s.stranger, held)
	if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
	fades(t, s.rdb, s.key)
}

// fades makes sure that a free name's key is gone or will be within 31 seconds: there may be tombstones.
func fades(t *testing.T, rdb *redis.Client, key string) {
	t.Helper()
	ttl, err := rdb.PTTL(t.Context(), key).Result()
	if err != nil || ttl == -1 || ttl > 31*time.Second {
		t.Errorf("the key lives for %v (%v)", ttl, err)
	}
}

// Whatever befalls its requests on the way: one Lock needs one Release, and then the name is free.
func TestLostAndLateRequestsCountOnce(t *testing.T) {
	t.Parallel()
	requests := []struct {
		name string
		run  func(*testing.T, *scene, trouble)
	}{
		{"acquire", troubledAcquire},
		{"release", troubledRelease},
		{"release that queues the next", troubledHandOver},
		{"renew", troubledRenew},
		{"re-entry", troubledReentry},
	}
	var cases []faultCase
	for _, r := range requests {
		for _, d := range troubles {
			cases = append(cases, faultCase{r.name, r.run, d, false}, faultCase{r.name, r.run, d, true})
		}
	}
	var mu sync.Mutex // guards keys
	var keys []string
	together(t, cases, func(t *testing.T, c faultCase) {
		var options []holdfast.LockOption
		if c.request == "renew" {
			options = append(options, holdfast.Lease(10*time.Second))
		}
		s := newScene(t, c.plain, options...)
		c.run(t, s, c.trouble)
		mu.Lock()
		defer mu.Unlock()
		keys = append(keys, s.key)
	})
	rdb := server.Shared(t).Client()
	eventually(t, 32*time.Second, "all keys are gone", func() bool {
		for _, key := range keys {
			if n, err := rdb.Exists(t.Context(), key).Result(); err != nil || n > 0 {
				return false
			}
		}
		return true
	})
}

func troubledAcquire(t *testing.T, s *scene, d trouble) {
	rule := d.put(s.proxy, script("acquire"))
	held := s.lock(t, t.Context())
	if !d.outlive {
		s.over(t, rule, d.n)
	}
	holder(t, s.stranger, held, 1)
	s.release(t, held)
	s.end(t, rule, d.n)
}

// The next holder is a stranger, whom a release that is sent again or late must spare.
func troubledRelease(t *testing.T, s *scene, d trouble) {
	held := s.lock(t, t.Context())
	next := lockAsync(t, s.stranger)
	eventually(t, 10*time.Second, "the stranger waits", func() bool { return waiting(t, s.stranger.Inspect) == 1 })
	rule := d.put(s.proxy, script("release"))
	s.release(t, held)
	got := <-next
	if got.err != nil {
		t.Fatal(got.err)
	}
	if !d.outlive {
		s.over(t, rule, d.n)
	}
	undisturbed(t, s.stranger, got.hold)
	if err := got.hold.Release(t.Context()); err != nil {
		t.Error(err)
	}
	s.end(t, rule, d.n)
}

// The next holder is another goroutine of the same client: the release queues it in the same call. It asks for a lease of
// its own, or the tenure would be passed on to it.
func troubledHandOver(t *testing.T, s *scene, d trouble) {
	held := s.lock(t, t.Context())
	ctx, isWaiting := observed(within(t, time.Minute))
	next := lockWith(ctx, s.client.Mutex(s.mine.Name(), holdfast.Lease(20*time.Second)))
	<-isWaiting
	rule := d.put(s.proxy, script("release"))
	s.release(t, held)
	got := <-next
	if got.err != nil {
		t.Fatal(got.err)
	}
	if got.hold.Token() <= held.Token() {
		t.Errorf("token %d after %d", got.hold.Token(), held.Token())
	}
	if !d.outlive {
		s.over(t, rule, d.n)
	}
	undisturbed(t, s.stranger, got.hold)
	s.release(t, got.hold)
	s.end(t, rule, d.n)
}

// observedContext tells when somebody begins to wait for its end.
type observedContext struct {
	context.Context
	observe func()
}

func (c observedContext) Done() <-chan struct{} {
	c.observe()
	return c.Context.Done()
}

// observed returns such a context, and a channel that is closed when a wait has begun.
func observed(ctx context.Context) (context.Context, <-chan struct{}) {
	begun := make(chan struct{})
	return observedContext{ctx, sync.OnceFunc(func() { close(begun) })}, begun
}

func troubledRenew(t *testing.T, s *scene, d trouble) {
	held := s.lock(t, t.Context())
	token := held.Token()
	rule := d.put(s.proxy, script("renew"))
	eventually(t, 20*time.Second, "the renewals got into trouble", func() bool { return rule.Hits() == d.n })
	deadline := held.Deadline()
	eventually(t, 10*time.Second, "a renewal goes through", func() bool {
		if err := held.Err(); err != nil {
			t.Fatal(err)
		}
		return held.Deadline().After(deadline)
	})
	if !d.outlive {
		s.over(t, rule, d.n)
	}
	if held.Token() != token {
		t.Errorf("token %d became %d", token, held.Token())
	}
	holder(t, s.stranger, held, 1)
	s.release(t, held)
	s.end(t, rule, d.n)
}

func troubledReentry(t *testing.T, s *scene, d trouble) {
	outer := s.lock(t, t.Context())
	rule := d.put(s.proxy, script("acquire"))
	inner := s.lock(t, outer.Context(t.Context()))
	if !d.outlive {
		s.over(t, rule, d.n)
	}
	holder(t, s.stranger, inner, 2)
	if inner.Token() != outer.Token() {
		t.Errorf("tokens %d and %d", inner.Token(), outer.Token())
	}
	s.release(t, inner)
	if !d.outlive { // else see TestLateReentryLeavesTheDepthRight
		holder(t, s.stranger, outer, 1)
	}
	s.release(t, outer)
	s.end(t, rule, d.n)
}

// abandonment is an acquire that fails while its requests are in trouble.
type abandonment struct {
	acquire string
	run     func(*testing.T, *scene, trouble)
	trouble
	plain bool
}

func (a abandonment) String() string {
	return faultCase{request: a.acquire, trouble: a.trouble, plain: a.plain}.String()
}

// permanent are the fates of all requests until the acquire has failed.
var permanent = []trouble{
	{name: "replies lost", n: -1},
	{name: "cut off", n: -1, close: true},
	{name: "half a second late", n: -1, late: 500 * time.Millisecond},
	{name: "two seconds late", n: -1, late: 2 * time.Second},
	{name: "five seconds late", n: -1, late: 5 * time.Second},
}

// An acquire that failed or was cancelled leaves nothing, however late its last request is executed.
func TestAbandonedAcquireLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	var cases []abandonment
	for _, d := range permanent {
		for _, plain := range []bool{false, true} {
			cases = append(cases,
				abandonment{"Lock", abandonLock, d, plain},
				abandonment{"TryLock", abandonTry, d, plain},
				abandonment{"Lock behind a stranger", abandonWait, d, plain},
				abandonment{"re-entry", abandonReentry, d, plain})
		}
	}
	together(t, cases, func(t *testing.T, c abandonment) { c.run(t, newScene(t, c.plain), c.trouble) })
}

// giveUp locks with a context that ends while redis fails.
func (s *scene) giveUp(t *testing.T, ctx context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 3*impatient)
	defer cancel()
	held, err := s.mine.Lock(ctx)
	if held != nil || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("%v, %v", held, err)
	}
}

func abandonLock(t *testing.T, s *scene, d trouble) {
	rule := d.put(s.proxy, script("acquire"))
	s.giveUp(t, t.Context())
	rule.Remove()
	s.end(t, rule, rule.Hits())
}

func abandonTry(t *testing.T, s *scene, d trouble) {
	rule := d.put(s.proxy, script("acquire"))
	if held, err := s.mine.TryLock(t.Context()); held != nil || !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("%v, %v", held, err)
	}
	rule.Remove()
	s.end(t, rule, rule.Hits())
}

// What may be left is a place in the queue, which would be granted.
func abandonWait(t *testing.T, s *scene, d trouble) {
	held, err := s.stranger.TryLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rule := d.put(s.proxy, script("acquire"))
	s.giveUp(t, t.Context())
	rule.Remove()
	s.over(t, rule, rule.Hits())
	eventually(t, soon, "nobody waits", func() bool { return waiting(t, s.stranger.Inspect) == 0 })
	undisturbed(t, s.stranger, held)
	if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
	s.end(t, rule, rule.Hits())
}

// What fails is the re-entry; the outer hold stays as it was.
func abandonReentry(t *testing.T, s *scene, d trouble) {
	outer := s.lock(t, t.Context())
	rule := d.put(s.proxy, script("acquire"))
	s.giveUp(t, outer.Context(t.Context()))
	rule.Remove()
	s.over(t, rule, rule.Hits())
	if d.late == 0 { // else see TestLateReentryLeavesTheDepthRight
		s.depth(t, 1, soon)
	}
	undisturbed(t, s.stranger, outer)
	s.release(t, outer)
	s.end(t, rule, rule.Hits())
}

// depth waits until the server knows one holder with this depth.
func (s *scene) depth(t *testing.T, depth int, limit time.Duration) {
	t.Helper()
	eventually(t, limit, fmt.Sprintf("the depth is %d", depth), func() bool {
		state, err := s.stranger.Inspect(within(t, 10*time.Second))
		return err == nil && len(state.Holders) == 1 && state.Holders[0].Depth == depth
	})
}

// A re-entry is executed once more after its hold was released, or after it was given up, while the outer hold
// lasts: the next renewal sets right what Inspect tells.
func TestLateReentryLeavesTheDepthRight(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Second
	s := newScene(t, false, holdfast.Lease(lease))
	outer := s.lock(t, t.Context())
	released := s.proxy.DelayRequests(1, 2*time.Second, script("acquire"))
	s.release(t, s.lock(t, outer.Context(t.Context())))
	s.over(t, released, 1)
	s.depth(t, 1, lease/3+soon)

	abandoned := s.proxy.DelayRequests(-1, 2*time.Second, script("acquire"))
	s.giveUp(t, outer.Context(t.Context()))
	abandoned.Remove()
	s.over(t, abandoned, abandoned.Hits())
	s.depth(t, 1, lease/3+soon)
	s.release(t, outer)
	s.free(t)
}

// Redis cannot be reached for longer than a lease lasts, and the acquire that was given up is executed only when it
// can be again: its lease begins then, and the undo must still be at work.
func TestAbandonedAcquireIsUndoneAfterALongOutage(t *testing.T) {
	t.Parallel()
	const lease, outage = 5 * time.Second, 8 * time.Second
	s := newScene(t, false, holdfast.Lease(lease))
	s.release(t, s.lock(t, t.Context())) // connected, scripts loaded
	rule := s.proxy.DelayRequests(1, outage, script("acquire"))
	ctx, cancel := context.WithTimeout(t.Context(), impatient/2)
	defer cancel()
	if held, err := s.mine.Lock(ctx); held != nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v, %v", held, err)
	}
	s.proxy.Refuse(true)
	s.proxy.Cut()
	eventually(t, 2*outage, "the late acquire is executed", func() bool { return rule.Answered() == 1 })
	s.proxy.Refuse(false)
	s.end(t, rule, 1)
}
