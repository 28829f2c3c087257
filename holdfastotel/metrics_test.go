package holdfastotel_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

type counts = map[string]int64

func lock(t *testing.T, ctx context.Context, m *holdfast.Mutex) *holdfast.Hold {
	t.Helper()
	held, err := m.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return held
}

func release(t *testing.T, held *holdfast.Hold, want error) {
	t.Helper()
	if err := held.Release(context.Background()); !errors.Is(err, want) {
		t.Errorf("Release gives %v, want %v", err, want)
	}
}

func TestEveryKindAndModeIsCountedByItself(t *testing.T) {
	t.Parallel()
	s, ctx := watch(t), t.Context()
	client := holdfasttest.NewServer(t).Client(holdfast.Observe(s.observer))
	work := func(context.Context) error {
		s.expect("holdfast.lock.waiting", counts{})
		return nil
	}
	err := errors.Join(
		client.Mutex("n").Do(ctx, work), client.FairLock("n").Do(ctx, work),
		client.RWLock("n").RDo(ctx, work), client.RWLock("n").Do(ctx, work), client.RWLock("n").Do(ctx, work),
		client.Semaphore("n", 5).Do(ctx, 1, work), client.Semaphore("n", 5).Do(ctx, 3, work),
	)
	if err != nil {
		t.Fatal(err)
	}
	all := counts{"mutex": 1, "fair": 1, "read rw": 1, "rw write": 2, "sem": 2}
	s.expect("holdfast.lock.wait.duration", all)
	s.expect("holdfast.lock.hold.duration", all)
	s.expect("holdfast.lock.acquisitions", counts{
		"at_once mutex": 1, "at_once fair": 1, "at_once read rw": 1, "at_once rw write": 2, "at_once sem": 2,
	})
	s.expect("holdfast.lock.held", counts{})
	s.expect("holdfast.lock.losses", counts{})
}

func TestHeldAndWaitingFollowContention(t *testing.T) {
	t.Parallel()
	s, theirs, ctx := watch(t), watch(t), t.Context()
	server := holdfasttest.NewServer(t)
	mine := server.Client(holdfast.Observe(s.observer))
	other := server.Client(holdfast.Observe(theirs.observer))
	held := lock(t, ctx, mine.Mutex("m"))
	done := make(chan error)
	go func() { done <- other.Mutex("m").Do(ctx, func(context.Context) error { return nil }) }()
	theirs.eventually("holdfast.lock.waiting", "mutex", 1)
	theirs.eventually("holdfast.subscription.up", "", 1)
	s.expect("holdfast.lock.waiting", counts{})
	s.expect("holdfast.lock.held", counts{"mutex": 1})
	theirs.expect("holdfast.lock.held", counts{})
	release(t, held, nil)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s.expect("holdfast.lock.acquisitions", counts{"at_once mutex": 1})
	if got := theirs.points("holdfast.lock.acquisitions"); got["mutex pushed"]+got["mutex polled"] != 1 || len(got) != 1 {
		t.Errorf("who waited acquired %v", got)
	}
}

func TestWhyThereIsNoHoldIsCounted(t *testing.T) {
	t.Parallel()
	s, ctx := watch(t), t.Context()
	server := holdfasttest.NewServer(t)
	client := server.Client(holdfast.Observe(s.observer))
	held := lock(t, ctx, server.Client().Mutex("m"))
	defer release(t, held, nil)

	if _, err := client.Mutex("m").TryLock(ctx); !errors.Is(err, holdfast.ErrNotAcquired) {
		t.Fatal(err)
	}
	if _, err := client.Mutex("m", holdfast.Wait(time.Millisecond)).Lock(ctx); !errors.Is(err, holdfast.ErrNotAcquired) {
		t.Fatal(err)
	}
	brief, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if _, err := client.Mutex("m").Lock(brief); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	left, leave := context.WithCancel(ctx)
	go func() {
		s.eventually("holdfast.lock.waiting", "mutex", 1)
		leave()
	}()
	if _, err := client.Mutex("m").Lock(left); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	err := client.RWLock("rw").RDo(ctx, func(ctx context.Context) error {
		_, err := client.RWLock("rw").Lock(ctx)
		return err
	})
	if !errors.Is(err, holdfast.ErrUpgrade) {
		t.Fatal(err)
	}
	all := counts{
		"mutex not_acquired": 2, "mutex timeout": 1, "cancelled mutex": 1, "rw upgrade write": 1, "at_once read rw": 1,
	}
	s.expect("holdfast.lock.acquisitions", all)
	delete(all, "at_once read rw")
	all["read rw"] = 1
	s.expect("holdfast.lock.wait.duration", all)
}

func TestAClosedClientsWaitersAreCountedAsSuch(t *testing.T) {
	t.Parallel()
	s, ctx := watch(t), t.Context()
	server := holdfasttest.NewServer(t)
	held := lock(t, ctx, server.Client().Mutex("m"))
	defer release(t, held, nil)
	client := server.Client(holdfast.Observe(s.observer))
	done := make(chan error)
	go func() {
		_, err := client.Mutex("m").Lock(ctx)
		done <- err
	}()
	s.eventually("holdfast.lock.waiting", "mutex", 1)
	if err := client.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, holdfast.ErrClosed) {
		t.Fatal(err)
	}
	s.expect("holdfast.lock.acquisitions", counts{"closed mutex": 1})
}

func TestRedisAwayIsUnavailable(t *testing.T) {
	t.Parallel()
	s, ctx := watch(t), t.Context()
	rdb := holdfasttest.NewServer(t).Redis()
	client, err := holdfast.New(rdb, holdfast.Logger(nil), holdfast.Observe(s.observer))
	if err != nil {
		t.Fatal(err)
	}
	held := lock(t, ctx, client.Mutex("m", holdfast.Lease(200*time.Millisecond)))
	if err := rdb.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Mutex("other").TryLock(ctx); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Fatal(err)
	}
	<-held.Done()
	release(t, held, holdfast.ErrLost)
	_ = client.Close(ctx)
	s.expect("holdfast.lock.acquisitions", counts{"at_once mutex": 1, "mutex unavailable": 1})
	s.expect("holdfast.lock.losses", counts{"mutex unrenewed": 1})
	if got := s.points("holdfast.lock.renewals")["mutex unavailable"]; got == 0 {
		t.Error("no failed renewal was counted")
	}
}

func TestALossIsCountedWithItsCauseAndHeldUntilRelease(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]struct {
		options []holdfast.LockOption
		now     func(ctx context.Context, client *holdfast.Client, server *holdfasttest.Server, held *holdfast.Hold) error
	}{
		"forced": {now: func(ctx context.Context, client *holdfast.Client, _ *holdfasttest.Server, _ *holdfast.Hold) error {
			return client.Mutex("m").ForceRelease(ctx)
		}},
		"forgotten": {now: func(ctx context.Context, _ *holdfast.Client, server *holdfasttest.Server, held *holdfast.Hold) error {
			if err := server.Redis().FlushAll(ctx).Err(); err != nil {
				return err
			}
			if err := held.Extend(ctx); !errors.Is(err, holdfast.ErrLost) {
				return errors.New("a hold that was flushed away is extended")
			}
			return nil
		}},
		"expired":  {options: []holdfast.LockOption{holdfast.FixedLease(100 * time.Millisecond)}},
		"max_hold": {options: []holdfast.LockOption{holdfast.MaxHold(100 * time.Millisecond)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ctx, labels := watch(t), t.Context(), words(attribute.String("", name), attribute.String("", "mutex"))
			server := holdfasttest.NewServer(t)
			client := server.Client(holdfast.Observe(s.observer))
			held := lock(t, ctx, client.Mutex("m", lose.options...))
			if lose.now != nil {
				if err := lose.now(ctx, client, server, held); err != nil {
					t.Fatal(err)
				}
			}
			<-held.Done()
			s.eventually("holdfast.lock.losses", labels, 1)
			s.expect("holdfast.lock.held", counts{"mutex": 1})
			release(t, held, holdfast.ErrLost)
			s.expect("holdfast.lock.held", counts{})
			s.expect("holdfast.lock.hold.duration", counts{"lost mutex": 1})
			s.expect("holdfast.lock.losses", counts{labels: 1})
		})
	}
}

func TestReentriesAreHoldsOfTheirOwn(t *testing.T) {
	t.Parallel()
	s, ctx := watch(t), t.Context()
	client := holdfasttest.NewServer(t).Client(holdfast.Observe(s.observer))
	err := client.Mutex("m").Do(ctx, func(ctx context.Context) error {
		return client.Mutex("m").Do(ctx, func(context.Context) error {
			s.expect("holdfast.lock.held", counts{"mutex": 2})
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	s.expect("holdfast.lock.acquisitions", counts{"at_once mutex": 1, "mutex reentered": 1})
	s.expect("holdfast.lock.hold.duration", counts{"mutex": 2})
}

func TestPassingOnInsideAClientIsToldApart(t *testing.T) {
	t.Parallel()
	s, ctx := watch(t), t.Context()
	client := holdfasttest.NewServer(t).Client(holdfast.Observe(s.observer))
	rounds := int64(0)
	for s.points("holdfast.lock.acquisitions")["mutex passed"] == 0 { // a late answer can have the server asked instead
		if rounds++; rounds > 100 {
			t.Fatal("never passed on")
		}
		held := lock(t, ctx, client.Mutex("m"))
		done := make(chan error)
		go func() { done <- client.Mutex("m").Do(ctx, func(context.Context) error { return nil }) }()
		s.eventually("holdfast.lock.waiting", "mutex", 1)
		release(t, held, nil)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	s.expect("holdfast.lock.wait.duration", counts{"mutex": 2 * rounds})
	s.expect("holdfast.lock.hold.duration", counts{"mutex": 2 * rounds})
}

func TestRenewalsAreCounted(t *testing.T) {
	t.Parallel()
	s, ctx := watch(t), t.Context()
	client := holdfasttest.NewServer(t).Client(holdfast.Observe(s.observer))
	held := lock(t, ctx, client.Mutex("m", holdfast.Lease(150*time.Millisecond)))
	defer release(t, held, nil)
	s.eventually("holdfast.lock.renewals", "mutex", 2)
}

func TestClientsShareAnObserverAndNothingIsLostInACrowd(t *testing.T) {
	t.Parallel()
	const goroutines, rounds = 4, 25
	s, ctx := watch(t), t.Context()
	server := holdfasttest.NewServer(t)
	clients := []*holdfast.Client{server.Client(holdfast.Observe(s.observer)), server.Client(holdfast.Observe(s.observer))}
	var crowd sync.WaitGroup
	for i := range goroutines {
		crowd.Go(func() {
			for range rounds {
				if err := clients[i%2].Mutex("m").Do(ctx, func(context.Context) error { return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	crowd.Wait()
	total := int64(0)
	for _, n := range s.points("holdfast.lock.acquisitions") {
		total += n
	}
	if total != goroutines*rounds {
		t.Errorf("%d acquisitions", total)
	}
	s.expect("holdfast.lock.wait.duration", counts{"mutex": goroutines * rounds})
	s.expect("holdfast.lock.hold.duration", counts{"mutex": goroutines * rounds})
}
