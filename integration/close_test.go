package integration

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/fault"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/internal/scripts"
)

// cancelled returns a context that is done.
func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// expect fails the test unless the error matches all of the others.
func expect(t testing.TB, what string, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Errorf("%s: %v, want %v", what, err, w)
		}
	}
}

// free fails the test unless the mutex can be had at once. It gives it back.
func free(t testing.TB, m *holdfast.Mutex) {
	t.Helper()
	hold, err := m.TryLock(within(t, 10*time.Second))
	if err != nil {
		t.Errorf("%s is not free: %v", m.Name(), err)
		return
	}
	released(t, hold)
}

// owned fails the test unless the hold lasts and the server knows it as the only one.
func owned(t testing.TB, m *holdfast.Mutex, hold *holdfast.Hold) {
	t.Helper()
	state, err := m.Inspect(within(t, 5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if !hold.Valid() || len(state.Holders) != 1 || state.Holders[0].Token != hold.Token() {
		t.Errorf("%v (%v) is not the only holder of %+v", hold, hold.Err(), state)
	}
}

func TestReleaseFreesWithACancelledContext(t *testing.T) {
	t.Parallel()
	srv, name := server.Shared(t), unique(t)
	if err := locked(t, newClient(t, srv.Client()).Mutex(name)).Release(cancelled()); err != nil {
		t.Fatal(err)
	}
	free(t, newClient(t, srv.Client()).Mutex(name))
}

// Whatever ended a hold, its Release says so and spares the next holder.
func TestReleaseOfAnEndedHoldSparesItsSuccessor(t *testing.T) {
	t.Parallel()
	srv := server.Shared(t)
	for _, c := range []struct {
		name string
		end  func(t *testing.T, client *holdfast.Client, hold *holdfast.Hold)
		want error
	}{
		{"released", func(t *testing.T, _ *holdfast.Client, h *holdfast.Hold) { released(t, h) }, holdfast.ErrReleased},
		{"lost", func(_ *testing.T, _ *holdfast.Client, h *holdfast.Hold) { <-h.Done() }, holdfast.ErrLost},
		{"closed", func(t *testing.T, client *holdfast.Client, _ *holdfast.Hold) {
			if err := client.Close(within(t, 10*time.Second)); err != nil {
				t.Error(err)
			}
		}, holdfast.ErrClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			name, lease := unique(t), 10*time.Second
			if errors.Is(c.want, holdfast.ErrLost) {
				lease = 200 * time.Millisecond
			}
			client := newClient(t, srv.Client())
			first := locked(t, client.Mutex(name, holdfast.FixedLease(lease)))
			c.end(t, client, first)
			m := newClient(t, srv.Client()).Mutex(name)
			second := locked(t, m)
			for range 3 {
				expect(t, "release", first.Release(context.Background()), c.want)
				expect(t, "extend", first.Extend(within(t, time.Second)), c.want)
			}
			expect(t, "err", first.Err(), c.want)
			owned(t, m, second)
			released(t, second)
		})
	}
}

// The answer to a poll that was under way when the push came is of no use any more, and no reason to call the
// hold lost: what is sent because of it may overtake the release.
func TestReleaseSucceedsThoughAPollIsAnsweredLate(t *testing.T) {
	t.Parallel()
	srv, name := server.Shared(t), unique(t)
	proxy := fault.NewProxy(t, srv.Addr())
	holder := newClient(t, srv.Client()).Mutex(name, holdfast.Lease(farLease))
	waiter := newClient(t, throughProxy(t, proxy)).Mutex(name, holdfast.Lease(farLease))
	hold := locked(t, holder)
	next := lockAside(within(t, 20*time.Second), waiter)
	queued(t, holder, 1)
	eventually(t, 10*time.Second, "a subscription", func() bool { return lastSubscriber(proxy) > 0 })
	poll := proxy.DelayReplies(1, 300*time.Millisecond, fault.Sha(scripts.SHAs()["acquire"]))
	eventually(t, 10*time.Second, "a poll", func() bool { return poll.Answered() == 1 })
	released(t, hold)
	got := served(t, promptly, next)
	proxy.DelayRequests(1, 450*time.Millisecond, fault.Sha(scripts.SHAs()["release"]))
	released(t, got)
	free(t, holder)
}

func TestNilHoldCountsAsReleased(t *testing.T) {
	t.Parallel()
	var hold *holdfast.Hold
	expect(t, "release", hold.Release(context.Background()), holdfast.ErrReleased)
	expect(t, "extend", hold.Extend(context.Background()), holdfast.ErrReleased)
	<-hold.Done()
	if hold.Valid() || hold.Token() != 0 {
		t.Error("a nil hold seems to hold something")
	}
}

func TestDoReleasesHoweverItsFunctionEnds(t *testing.T) {
	t.Parallel()
	srv, boom := server.Shared(t), errors.New("boom")
	m := newClient(t, srv.Client()).Mutex(unique(t))
	other := newClient(t, srv.Client()).Mutex(m.Name())

	func() {
		defer func() {
			if p, _ := recover().(error); !errors.Is(p, boom) {
				t.Errorf("panic %v did not pass through", p)
			}
		}()
		_ = m.Do(within(t, 10*time.Second), func(context.Context) error { panic(boom) })
	}()
	free(t, other)

	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = m.Do(within(t, 10*time.Second), func(context.Context) error { runtime.Goexit(); return nil })
		t.Error("Do returned after Goexit")
	}()
	<-gone
	free(t, other)

	err := m.Do(within(t, 10*time.Second), func(context.Context) error { return boom })
	expect(t, "Do", err, boom)
	if errors.Is(err, holdfast.ErrLost) {
		t.Errorf("Do lost its lock: %v", err)
	}
	free(t, other)
}

func TestDoOfALostLockEndsItsContextAndJoinsTheErrors(t *testing.T) {
	t.Parallel()
	srv, boom := server.Shared(t), errors.New("boom")
	rdb := srv.Client()
	m := newClient(t, rdb).Mutex(unique(t), holdfast.Lease(time.Second))
	for _, want := range []error{boom, nil} {
		err := m.Do(within(t, 10*time.Second), func(ctx context.Context) error {
			if err := rdb.Del(ctx, holdfast.DefaultPrefix+"mutex:"+m.Name()).Err(); err != nil {
				return err
			}
			<-ctx.Done()
			expect(t, "cause", context.Cause(ctx), holdfast.ErrLost)
			if _, held := m.Held(ctx); held {
				t.Error("the context still carries the hold")
			}
			return want
		})
		expect(t, "Do", err, holdfast.ErrLost)
		if want != nil {
			expect(t, "Do", err, want)
		}
	}
}

// The work is done: whoever calls Do must not repeat it because its lock could not be given back.
func TestDoSucceedsThoughRedisDiesBeforeItsRelease(t *testing.T) {
	leavesNothing(t)
	srv := server.Start(t)
	var log logbook
	m := newClient(t, srv.Client(), log.option()).Mutex(unique(t))
	if err := m.Do(within(t, 20*time.Second), func(context.Context) error { srv.Kill(); return nil }); err != nil {
		t.Error(err)
	}
	if log.warnings("release not confirmed") != 1 {
		t.Errorf("the release was not reported:\n%s", log.text())
	}
	srv.Restart()
	free(t, m)
}

func TestCloseLeavesNothingHeldWaitingOrSent(t *testing.T) {
	leavesNothing(t)
	const n = 50
	srv := server.Start(t)
	proxy := fault.NewProxy(t, srv.Addr())
	client, other := newClient(t, throughProxy(t, proxy)), newClient(t, srv.Client())

	var holds, others []*holdfast.Hold
	var waits []<-chan result
	for i := range n {
		holds = append(holds, locked(t, client.Mutex(fmt.Sprint("held", i))))
		m := other.Mutex(fmt.Sprint("awaited", i))
		others = append(others, locked(t, m))
		waits = append(waits, lockAside(within(t, time.Minute), client.Mutex(m.Name())))
		queued(t, m, 1)
	}
	inside, finish, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- client.Mutex("running").Do(within(t, time.Minute), func(ctx context.Context) error {
			close(inside)
			<-finish
			return ctx.Err()
		})
	}()
	<-inside

	closed := make(chan error, 1)
	go func() { closed <- client.Close(within(t, 20*time.Second)) }()
	late := time.After(promptly)
	for i, w := range waits {
		select {
		case r := <-w:
			expect(t, fmt.Sprint("waiter ", i), r.err, holdfast.ErrClosed)
		case <-late:
			t.Fatalf("waiter %d still waits", i)
		}
	}
	_, err := client.Mutex("new").Lock(within(t, time.Second))
	expect(t, "Lock while closing", err, holdfast.ErrClosed)
	select {
	case err := <-closed:
		t.Fatalf("Close did not wait for Do: %v", err)
	case err := <-done:
		t.Fatalf("Do did not wait for its function: %v", err)
	default:
	}
	close(finish)
	for what, ch := range map[string]chan error{"Do": done, "Close": closed} {
		select {
		case err := <-ch:
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s goes on", what)
		}
	}

	late, sent := time.After(2*time.Second), proxy.Count(fault.Any())
	refuses(t, client)
	for i, h := range holds {
		expect(t, "err", h.Err(), holdfast.ErrClosed)
		expect(t, "release", h.Release(context.Background()), holdfast.ErrClosed)
		free(t, other.Mutex(fmt.Sprint("held", i)))
		if n := waiting(t, other.Mutex(fmt.Sprint("awaited", i)).Inspect); n != 0 {
			t.Errorf("%d tickets are left", n)
		}
		released(t, others[i])
	}
	free(t, other.Mutex("running"))
	<-late
	if sent.Hits() != 0 {
		t.Errorf("%d commands after Close", sent.Hits())
	}
	if n := subscribers(t, srv.Client()); n != 0 {
		t.Errorf("%d subscriptions after Close", n)
	}
}

// refuses fails the test unless a closed client refuses every call.
func refuses(t *testing.T, client *holdfast.Client) {
	t.Helper()
	m, ctx := client.Mutex("closed"), within(t, 5*time.Second)
	_, err := m.Lock(ctx)
	expect(t, "Lock", err, holdfast.ErrClosed)
	_, err = m.TryLock(ctx)
	expect(t, "TryLock", err, holdfast.ErrClosed)
	_, err = m.Inspect(ctx)
	expect(t, "Inspect", err, holdfast.ErrClosed)
	expect(t, "ForceRelease", m.ForceRelease(ctx), holdfast.ErrClosed)
	expect(t, "Do", m.Do(ctx, func(context.Context) error { t.Error("Do ran"); return nil }), holdfast.ErrClosed)
	if err := client.Close(ctx); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

// A function that runs on keeps Close from returning nil, not from giving back what the client holds.
func TestCloseEndsHoldsThoughADoRunsOn(t *testing.T) {
	t.Parallel()
	srv, name := server.Shared(t), unique(t)
	client, other := newClient(t, srv.Client()), newClient(t, srv.Client())
	hold := locked(t, client.Mutex(name+".held", holdfast.Lease(farLease)))
	inside, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- client.Mutex(name, holdfast.Lease(farLease)).Do(within(t, time.Minute), func(ctx context.Context) error {
			close(inside)
			<-ctx.Done() // nothing but Close ends it
			expect(t, "cause", context.Cause(ctx), holdfast.ErrClosed)
			return nil
		})
	}()
	<-inside
	expect(t, "Close", client.Close(within(t, 300*time.Millisecond)), context.DeadlineExceeded)
	expect(t, "hold", hold.Err(), holdfast.ErrClosed)
	select {
	case err := <-done:
		expect(t, "Do", err, holdfast.ErrClosed)
	case <-time.After(promptly):
		t.Error("the function's context did not end")
	}
	for _, name := range []string{name, name + ".held"} {
		released(t, served(t, promptly, lockAside(within(t, 10*time.Second), other.Mutex(name))))
	}
}

func TestCloseOnAFrozenServerEndsWithItsContext(t *testing.T) {
	leavesNothing(t)
	srv := server.Start(t)
	patient := func(o *redis.Options) { o.ReadTimeout = 30 * time.Second }
	client, other := newClient(t, srv.Client(patient)), newClient(t, srv.Client())
	hold := locked(t, client.Mutex("held"))
	m := other.Mutex("awaited")
	locked(t, m)
	wait := lockAside(within(t, time.Minute), client.Mutex(m.Name()))
	queued(t, m, 1)

	srv.Pause()
	defer srv.Resume()
	began := time.Now()
	if err := client.Close(within(t, time.Second)); err == nil {
		t.Error("Close claims to have released what it could not")
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("Close took %v", took)
	}
	select {
	case r := <-wait:
		expect(t, "waiter", r.err, holdfast.ErrClosed)
	case <-time.After(promptly):
		t.Error("the waiter still waits")
	}
	expect(t, "hold", hold.Err(), holdfast.ErrClosed)
	refuses(t, client)
}
