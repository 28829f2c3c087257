package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/fault"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/worker"
	"github.com/holdfast-go/holdfast/internal/config"
	"github.com/holdfast-go/holdfast/internal/scripts"
)

func init() {
	worker.Register("frozen holder", holdFrozen)
	worker.Register("frozen waiter", waitFrozen)
}

// However a hold came about, a lease of one second lasts ten times as long while its client lives. Not parallel: a
// machine that stands still for most of a second loses such a lease rightly.
func TestRenewalKeepsShortLeasesForTenSeconds(t *testing.T) {
	srv := server.Start(t)
	mine, other := newClient(t, srv.Client()), newClient(t, srv.Client())
	holds := shortHolds(t, mine, other)
	if stall, err := keep(t, holds, other); err != nil {
		t.Fatalf("%v (the test itself once stood still for %v)", err, stall)
	}
}

const shortLease = time.Second

// shortHolds takes holds in every way there is.
func shortHolds(t *testing.T, mine, other *holdfast.Client) []*holdfast.Hold {
	t.Helper()
	name, ctx := unique(t), within(t, time.Minute)
	var holds []*holdfast.Hold
	take := func(held *holdfast.Hold, err error) *holdfast.Hold {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		holds = append(holds, held)
		return held
	}
	mutex := func(client *holdfast.Client, how string) *holdfast.Mutex {
		return client.Mutex(name+"."+how, holdfast.Lease(shortLease))
	}
	take(mutex(mine, "locked").Lock(ctx))
	take(mutex(mine, "tried").TryLock(ctx))
	take(handedOver(t, mutex(other, "pushed"), mutex(mine, "pushed")))
	outer := take(mutex(mine, "re-entered").Lock(ctx))
	holds = holds[:len(holds)-1]
	take(mutex(mine, "re-entered").Lock(outer.Context(ctx)))
	if err := outer.Release(ctx); err != nil { // the inner one keeps the tenure
		t.Fatal(err)
	}
	return holds
}

// keep watches holds for ten leases and releases them. It returns what was wrong, and the longest time for which
// this process did not get on.
func keep(t *testing.T, holds []*holdfast.Hold, other *holdfast.Client) (stall time.Duration, err error) {
	ctx := within(t, time.Minute)
	tokens := make(map[string]int64)
	for _, held := range holds {
		tokens[held.Name()] = held.Token()
	}
	last := time.Now()
	for end := last.Add(10 * shortLease); last.Before(end); time.Sleep(20 * time.Millisecond) {
		for _, held := range holds {
			stolen, tried := other.Mutex(held.Name()).TryLock(ctx)
			if stolen != nil {
				if held.Valid() {
					t.Errorf("two hold %s at once", held.Name())
				}
				_ = stolen.Release(ctx)
			}
			if !errors.Is(tried, holdfast.ErrNotAcquired) && err == nil {
				err = fmt.Errorf("TryLock of %s: %v, its holder: %v", held.Name(), tried, held.Err())
			}
		}
		now := time.Now()
		stall, last = max(stall, now.Sub(last)), now
		if err != nil {
			return stall, err
		}
	}
	for _, held := range holds {
		if held.Token() != tokens[held.Name()] {
			t.Errorf("the token of %s was %d and became %d", held.Name(), tokens[held.Name()], held.Token())
		}
		err = errors.Join(err, held.Err(), held.Release(ctx))
		if next, tried := other.Mutex(held.Name()).TryLock(ctx); tried != nil {
			t.Errorf("%s after its release: %v", held.Name(), tried)
		} else if err := next.Release(ctx); err != nil {
			t.Error(err)
		}
	}
	return stall, err
}

// handedOver has the mutex held through from and waited for through to, and returns what to is granted.
func handedOver(t *testing.T, from, to *holdfast.Mutex) (*holdfast.Hold, error) {
	t.Helper()
	first, err := from.Lock(within(t, 20*time.Second))
	if err != nil {
		return nil, err
	}
	next := lockAsync(t, to)
	eventually(t, 10*time.Second, "it is waited for", func() bool { return waiting(t, from.Inspect) == 1 })
	if err := first.Release(t.Context()); err != nil {
		return nil, err
	}
	got := <-next
	return got.hold, got.err
}

// locking is what became of a Lock.
type locking struct {
	hold *holdfast.Hold
	err  error
}

// lockAsync locks in a goroutine, within a minute.
func lockAsync(t *testing.T, m *holdfast.Mutex) <-chan locking {
	t.Helper()
	return lockWith(within(t, time.Minute), m)
}

func lockWith(ctx context.Context, m *holdfast.Mutex) <-chan locking {
	done := make(chan locking, 1)
	go func() {
		held, err := m.Lock(ctx)
		done <- locking{held, err}
	}()
	return done
}

// awakening is what a holder found when it was thawed.
type awakening struct {
	Valid        bool // the very first thing it asked
	Done         bool
	Lost         bool // Err wraps ErrLost
	Cause        bool // so does the cause of the hold's context
	Release      string
	ReleasedLost bool
	ValidAgain   bool
}

// holdFrozen is the worker that is frozen while it holds. Arguments: address, name, lease.
func holdFrozen(args []string) error {
	lease, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	client, _, err := workerClient(&redis.Options{Addr: args[0]})
	if err != nil {
		return err
	}
	held, err := client.Mutex(args[1], holdfast.Lease(lease)).Lock(context.Background())
	if err != nil {
		return err
	}
	ctx := held.Context(context.Background())
	fmt.Println("token", held.Token())
	thawed(lease)
	a := awakening{Valid: held.Valid()}
	select {
	case <-held.Done():
		a.Done = true
	case <-time.After(2 * time.Second):
	}
	a.Lost = errors.Is(held.Err(), holdfast.ErrLost)
	a.Cause = errors.Is(context.Cause(ctx), holdfast.ErrLost)
	err = held.Release(context.Background())
	a.Release, a.ReleasedLost = fmt.Sprint(err), errors.Is(err, holdfast.ErrLost)
	a.ValidAgain = held.Valid()
	if err := closeWorker(client); err != nil { // whatever it still undoes is done by then
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(a)
}

// thawed returns right after the process was frozen for longer than d, before any timer of it can fire: it
// spins, so its thread is what goes on first.
func thawed(d time.Duration) {
	for last := time.Now(); ; {
		now := time.Now()
		if now.Sub(last) > d {
			return
		}
		last = now
	}
}

// A holder that sleeps through its lease wakes up knowing, and cannot harm whoever holds by then.
func TestFrozenHolderWakesUpKnowingItsLoss(t *testing.T) {
	const lease = time.Second
	srv := server.Start(t)
	client := newClient(t, srv.Client())
	m := client.Mutex(unique(t))
	p := worker.Spawn(t, "frozen holder", srv.Addr(), m.Name(), lease.String())
	var token int64
	if _, err := fmt.Sscanf(nextLine(t, p), "token %d", &token); err != nil {
		t.Fatal(err)
	}
	next := lockAsync(t, m)
	eventually(t, 10*time.Second, "it is waited for", func() bool { return waiting(t, m.Inspect) == 1 })

	p.Stop()
	stopped := time.Now()
	got := <-next // while the worker is frozen
	if got.err != nil {
		t.Fatal(got.err)
	}
	if got.hold.Token() <= token {
		t.Errorf("token %d after %d", got.hold.Token(), token)
	}
	time.Sleep(time.Until(stopped.Add(2 * lease)))
	p.Cont()

	var a awakening
	if err := json.Unmarshal([]byte(nextLine(t, p)), &a); err != nil {
		t.Fatal(err)
	}
	if a.Valid || !a.Done || !a.Lost || !a.Cause || !a.ReleasedLost || a.ValidAgain {
		t.Errorf("the thawed holder found %+v", a)
	}
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	undisturbed(t, m, got.hold)
	if err := got.hold.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// undisturbed makes sure that a hold is the only one, at the client and at the server.
func undisturbed(t *testing.T, m *holdfast.Mutex, held *holdfast.Hold) {
	t.Helper()
	if err := held.Extend(within(t, 10*time.Second)); err != nil {
		t.Errorf("the holder is disturbed: %v", err)
	}
	holder(t, m, held, 0)
}

// holder makes sure that the server knows one holder, with the hold's token and this depth; 0: any.
func holder(t *testing.T, m *holdfast.Mutex, held *holdfast.Hold, depth int) {
	t.Helper()
	state, err := m.Inspect(within(t, 10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if hs := state.Holders; len(hs) != 1 || hs[0].Token != held.Token() || depth > 0 && hs[0].Depth != depth {
		t.Errorf("holders %+v, expected token %d with depth %d", hs, held.Token(), depth)
	}
	if err := held.Err(); err != nil {
		t.Error(err)
	}
}

// sluice holds a pushed grant back until it is opened: the socket brought it, but nobody reads it.
type sluice struct {
	opened chan struct{} // closed by open
	open   func()
	once   sync.Once // the first push was taken in
}

// sluiceConn is one connection of a client behind a sluice.
type sluiceConn struct {
	net.Conn
	sluice *sluice
	pushed atomic.Bool // the read before brought a push
}

func (c *sluiceConn) Read(b []byte) (int, error) {
	if c.pushed.Load() { // who reads on is through with the push
		c.sluice.once.Do(func() { fmt.Println("push taken in") })
	}
	n, err := c.Conn.Read(b)
	if bytes.Contains(b[:n], []byte("grant ")) {
		<-c.sluice.opened
		c.pushed.Store(true)
	}
	return n, err
}

// dial is for redis.Options.Dialer.
func (s *sluice) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &sluiceConn{Conn: conn, sluice: s}, nil
}

// waitFrozen is the worker that is frozen while it waits. Told to "open", it reads what was pushed to it; told
// to "release", it does. Arguments: address, name.
func waitFrozen(args []string) error {
	s := &sluice{opened: make(chan struct{})}
	s.open = sync.OnceFunc(func() { close(s.opened) })
	patient := func(c *config.Config) { c.Ping = time.Minute } // the subscription must survive
	client, _, err := workerClient(&redis.Options{Addr: args[0], Dialer: s.dial}, patient)
	if err != nil {
		return err
	}
	released := make(chan error, 1)
	release := make(chan struct{})
	go func() {
		held, err := client.Mutex(args[1]).Lock(context.Background())
		if err != nil {
			released <- err
			return
		}
		fmt.Println("held", held.Token(), monotonic())
		<-release
		released <- held.Release(context.Background())
	}()
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		switch in.Text() {
		case "open":
			s.open()
		case "release":
			close(release)
			return firstError(<-released, closeWorker(client))
		}
	}
	return in.Err()
}

// A waiter is granted while it is frozen, and another one after its claim ran out. It wakes up with the old
// grant unread, and must not believe it: neither at once, when its last answer is too old, nor after a poll,
// when its last answer is fresh but newer than the grant.
func TestFrozenWaiterDoesNotBelieveAnOldGrant(t *testing.T) {
	for name, pollFirst := range map[string]bool{"read at once": false, "read after a poll": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			frozenWaiter(t, pollFirst)
		})
	}
}

func frozenWaiter(t *testing.T, pollFirst bool) {
	srv := server.Start(t)
	proxy := fault.NewProxy(t, srv.Addr())
	m, rival := newClient(t, srv.Client()).Mutex(unique(t)), newClient(t, srv.Client())
	first, err := m.Lock(within(t, 10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	p := worker.Spawn(t, "frozen waiter", proxy.Addr(), m.Name())
	rdb := srv.Client()
	eventually(t, 20*time.Second, "the worker waits, subscribed", func() bool {
		inbox := inboxOfWaiter(t, m)
		n, err := rdb.PubSubNumSub(t.Context(), inbox).Result()
		return err == nil && n[inbox] == 1
	})
	next := lockAsync(t, rival.Mutex(m.Name()))
	eventually(t, 10*time.Second, "the rival waits", func() bool { return waiting(t, m.Inspect) == 2 })

	p.Stop()
	polls := proxy.Count(fault.Sha(scripts.SHAs()["acquire"]))
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	granted, err := m.Inspect(t.Context())
	if err != nil || len(granted.Holders) != 1 || len(granted.Queue) != 1 {
		t.Fatalf("%+v %v", granted, err)
	}
	claim := granted.Holders[0]
	got := <-next
	if got.err != nil || got.hold.Token() <= claim.Token {
		t.Fatalf("%v after %+v: %v", got.hold, claim, got.err)
	}

	if !pollFirst {
		_, _ = fmt.Fprintln(p.Stdin, "open")
	}
	p.Cont()
	if pollFirst {
		eventually(t, 10*time.Second, "the worker has polled", func() bool { return polls.Answered() >= 2 })
		_, _ = fmt.Fprintln(p.Stdin, "open")
	}
	if line := nextLine(t, p); line != "push taken in" {
		t.Fatalf("%q while %v lasts", line, got.hold)
	}
	eventually(t, 10*time.Second, "the worker waits", func() bool { return waiting(t, m.Inspect) == 1 })
	undisturbed(t, m, got.hold)

	left := monotonic()
	if err := got.hold.Release(t.Context()); err != nil {
		t.Error(err)
	}
	var token, at int64
	line := nextLine(t, p)
	if _, err := fmt.Sscanf(line, "held %d %d", &token, &at); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	if token <= got.hold.Token() || at < left {
		t.Errorf("held with token %d at %d, the rival had %d until %d, the claim was %d", token, at, got.hold.Token(), left, claim.Token)
	}
	_, _ = fmt.Fprintln(p.Stdin, "release")
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
}

// inboxOfWaiter returns the inbox of the first waiter, or a channel that nobody has.
func inboxOfWaiter(t *testing.T, m *holdfast.Mutex) string {
	t.Helper()
	state, err := m.Inspect(within(t, 5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if len(state.Queue) == 0 {
		return "nobody"
	}
	return "holdfast:inbox:" + state.Queue[0].Client
}

// ending is a way for a context to end after 200 ms.
type ending struct {
	name string
	make func(context.Context) (context.Context, context.CancelFunc)
}

var errHadEnough = errors.New("had enough")

var endings = []ending{
	{"deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, 200*time.Millisecond)
	}},
	{"deadline with a cause", func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeoutCause(ctx, 200*time.Millisecond, errHadEnough)
	}},
	{"cancelled", func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(200*time.Millisecond, cancel)
		return ctx, cancel
	}},
	{"cancelled with a cause", func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(200*time.Millisecond, func() { cancel(errHadEnough) })
		return ctx, func() { cancel(nil) }
	}},
}

// attempt is one call on a server that hangs.
type attempt struct {
	name  string
	mutex *holdfast.Mutex
	call  func(context.Context, *holdfast.Mutex) error
	ending
	outer *holdfast.Hold // the call re-enters it
}

func (a attempt) String() string { return a.name + "/" + a.ending.name }

// calls are what may wait.
var calls = []struct {
	name string
	call func(context.Context, *holdfast.Mutex) error
}{
	{"Lock", func(ctx context.Context, m *holdfast.Mutex) error { _, err := m.Lock(ctx); return err }},
	{"TryLock", func(ctx context.Context, m *holdfast.Mutex) error { _, err := m.TryLock(ctx); return err }},
	{"Do", func(ctx context.Context, m *holdfast.Mutex) error {
		return m.Do(ctx, func(context.Context) error { return errors.New("it ran") })
	}},
}

// attempts combines calls and endings, each on a name of its own.
func attempts(client *holdfast.Client, name, how string) []attempt {
	var as []attempt
	for _, c := range calls {
		for _, e := range endings {
			m := client.Mutex(fmt.Sprintf("%s.%s.%d", name, how, len(as)), holdfast.Lease(20*time.Second))
			as = append(as, attempt{name: c.name + " " + how, mutex: m, call: c.call, ending: e})
		}
	}
	return as
}

// A server that hangs keeps nobody longer than his context: not the one who waits for the first answer, nor the
// one whose connection is yet to be made, nor the one who re-enters. And what they asked for, which the server
// executes when it goes on, is undone.
func TestWaitOnAFrozenServerEndsWithItsContext(t *testing.T) {
	srv := server.Start(t)
	patient := func(o *redis.Options) { o.ReadTimeout, o.PoolSize = 10*time.Second, 50 }
	warm, cold := newClient(t, srv.Client(patient)), newClient(t, srv.Client(patient))
	observer, name := newClient(t, srv.Client()), unique(t)
	inside := attempts(warm, name, "inside")
	var wg sync.WaitGroup
	for i := range inside { // all at once, for as many connections
		wg.Go(func() {
			got := <-lockAsync(t, inside[i].mutex)
			if inside[i].outer = got.hold; got.err != nil {
				t.Error(got.err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	outside := append(attempts(warm, name, "connected"), attempts(cold, name, "unconnected")...)

	srv.Pause()
	together(t, slices.Concat(outside, inside), endsWithItsContext)
	srv.Resume()

	end := time.Now().Add(soon)
	for _, a := range outside {
		m := observer.Mutex(a.mutex.Name())
		eventually(t, time.Until(end), a.String()+" left nothing behind", func() bool { return isFree(t, m) })
	}
	for _, a := range inside { // only the re-entry was given up
		undisturbed(t, observer.Mutex(a.mutex.Name()), a.outer)
		if err := a.outer.Release(t.Context()); err != nil {
			t.Errorf("%v: release of the outer hold: %v", a, err)
		}
		m := observer.Mutex(a.mutex.Name())
		eventually(t, soon, a.String()+" left nothing behind", func() bool { return isFree(t, m) })
	}
}

// isFree reports whether nobody holds the name or waits for it.
func isFree(t *testing.T, m *holdfast.Mutex) bool {
	t.Helper()
	state, err := m.Inspect(within(t, 10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return !state.Held() && len(state.Queue) == 0
}

func endsWithItsContext(t *testing.T, a attempt) {
	ctx := t.Context()
	if a.outer != nil {
		ctx = a.outer.Context(ctx)
	}
	ctx, cancel := a.make(ctx)
	defer cancel()
	began := time.Now()
	err := a.call(ctx, a.mutex)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
	if err == nil || !errors.Is(err, ctx.Err()) || !errors.Is(err, context.Cause(ctx)) {
		t.Errorf("%v, after %v, %v", err, ctx.Err(), context.Cause(ctx))
	}
}

// The watchdog never learns of a hold that nobody got.
func TestAbandonedWaitOnAFrozenServerIsNotRenewed(t *testing.T) {
	const lease = time.Second
	srv := server.Start(t)
	proxy := fault.NewProxy(t, srv.Addr())
	client := newClient(t, srv.Client(func(o *redis.Options) { o.Addr, o.ReadTimeout = proxy.Addr(), 10*time.Second }))
	m, observer := client.Mutex(unique(t), holdfast.Lease(lease)), newClient(t, srv.Client())
	if err := m.Do(within(t, 10*time.Second), func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	asked := proxy.Count(fault.Sha(scripts.SHAs()["acquire"]))
	renewals := proxy.Count(fault.Sha(scripts.SHAs()["renew"]))
	srv.Pause()
	for _, e := range endings {
		endsWithItsContext(t, attempt{mutex: m, call: calls[0].call, ending: e})
	}
	srv.Resume()
	eventually(t, soon, "the server has caught up", func() bool { return asked.Hits() > 0 && asked.Answered() == asked.Hits() })
	seen := observer.Mutex(m.Name())
	eventually(t, soon, "the name is free", func() bool { return isFree(t, seen) })
	time.Sleep(lease) // three renewals would be due
	if n := renewals.Hits(); n > 0 {
		t.Errorf("%d renewals of what nobody holds", n)
	}
}
