package integration

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/fault"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/worker"
)

// What holdfast sends, and does not send.

func TestTryLockIsOneScriptAndNoSubscription(t *testing.T) {
	t.Parallel()
	srv := server.Shared(t)
	hold := locked(t, newClient(t, srv.Client()).Mutex(unique(t)))
	proxy := fault.NewProxy(t, srv.Addr())
	m := newClient(t, throughProxy(t, proxy)).Mutex(hold.Name())
	scripts, subscriptions := proxy.Count(fault.Script()), proxy.Count(fault.Command("SUBSCRIBE"))
	_, err := m.TryLock(within(t, 10*time.Second))
	expect(t, "TryLock", err, holdfast.ErrNotAcquired)
	if scripts.Hits() != 1 || subscriptions.Hits() != 0 {
		t.Errorf("%d scripts, %d subscriptions", scripts.Hits(), subscriptions.Hits())
	}
	released(t, hold)
}

// The waiters of one name in one client poll as one, about once a second.
func TestWaitingForALongHoldSendsLittle(t *testing.T) {
	t.Parallel()
	srv := server.Shared(t)
	m := newClient(t, srv.Client()).Mutex(unique(t), holdfast.Lease(farLease))
	hold := locked(t, m)
	proxy := fault.NewProxy(t, srv.Addr())
	waiting, ctx := newClient(t, throughProxy(t, proxy)).Mutex(m.Name()), within(t, 30*time.Second)
	var waits sync.WaitGroup
	for range 20 {
		waits.Go(func() {
			if err := waiting.Do(ctx, func(context.Context) error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	queued(t, m, 1)
	eventually(t, 10*time.Second, "the subscription", func() bool { return lastSubscriber(proxy) > 0 })
	sent := proxy.Count(fault.Script())
	<-time.After(3 * time.Second)
	if n := sent.Hits(); n > 30 { // each on its own would be 60, and much more without a pause
		t.Errorf("%d scripts in 3 s for 20 waiters", n)
	}
	released(t, hold)
	waits.Wait()
}

// A server that refuses is asked again with pauses.
func TestRefusedWaitersDoNotStorm(t *testing.T) {
	t.Parallel()
	srv := server.Start(t, server.Args("--min-replicas-to-write", "1"))
	proxy := fault.NewProxy(t, srv.Addr())
	client, ctx := newClient(t, throughProxy(t, proxy)), within(t, 30*time.Second)
	const waiters = 20
	sent := proxy.Count(fault.Script())
	var waits []<-chan result
	for i := range waiters {
		waits = append(waits, lockAside(ctx, client.Mutex(fmt.Sprint(unique(t), i))))
	}
	<-time.After(3 * time.Second)
	t.Logf("%d scripts in 3 s for %d waiters that are refused", sent.Hits(), waiters)
	if n := sent.Hits(); n > waiters*3*50 {
		t.Errorf("%d scripts in 3 s for %d waiters that are refused", n, waiters)
	}
	must(t, srv.Client().ConfigSet(ctx, "min-replicas-to-write", "0").Err())
	for _, w := range waits {
		released(t, served(t, 20*time.Second, w))
	}
}

// A subscription that hears nothing is nobody's business who finds his name free.
func TestDeafSubscriptionDelaysNoOtherName(t *testing.T) {
	t.Parallel()
	srv := server.Shared(t)
	hold := locked(t, newClient(t, srv.Client()).Mutex(unique(t), holdfast.Lease(farLease)))
	proxy := fault.NewProxy(t, srv.Addr())
	proxy.Blackhole(fault.ToClient, fault.Subscribers)
	client := newClient(t, throughProxy(t, proxy), slowPolls())
	next := lockAside(within(t, 60*time.Second), client.Mutex(hold.Name(), holdfast.Lease(farLease)))
	queued(t, client.Mutex(hold.Name()), 1)
	for i := range 10 {
		other := client.Mutex(fmt.Sprint(hold.Name(), i))
		released(t, locked(t, other)) // within 10 s: polls are half a minute apart
	}
	proxy.Heal()
	released(t, hold)
	released(t, served(t, 50*time.Second, next))
}

// Nobody tells of the death of a holder: its lease does.
func TestWaiterOfAKilledHolderIsServedWhenTheLeaseEnds(t *testing.T) {
	t.Parallel()
	srv := server.Shared(t)
	m := newClient(t, srv.Client(), slowPolls()).Mutex(unique(t), holdfast.Lease(farLease))
	doomed := hire(t, srv.Addr())
	doomed.tell("acquire 1 mutex %s 2s", m.Name())
	doomed.hear("granted 1")
	next := lockAside(within(t, 60*time.Second), m)
	queued(t, m, 1)
	doomed.Kill()
	released(t, served(t, 2*time.Second+promptly, next))
}

func init() { worker.Register("busy holder", holdBusily) }

// holdBusily holds for a while in a process that has no time. Arguments: address, name, lease, how long.
func holdBusily(args []string) error {
	lease, err1 := time.ParseDuration(args[2])
	long, err2 := time.ParseDuration(args[3])
	if err := firstError(err1, err2); err != nil {
		return err
	}
	runtime.GOMAXPROCS(1)
	end := time.Now().Add(long)
	for range 4 {
		go func() {
			for n := 0; time.Now().Before(end); n++ {
				_ = make([]byte, n%4096)
			}
		}()
	}
	client, _, err := workerClient(&redis.Options{Addr: args[0]})
	if err != nil {
		return err
	}
	held, err := client.Mutex(args[1], holdfast.Lease(lease)).Lock(context.Background())
	if err != nil {
		return err
	}
	stays(held.Done(), time.Until(end))
	fmt.Fprintln(os.Stdout, "held until", held.Err())
	return firstError(held.Release(context.Background()), closeWorker(client))
}

// One processor, which four goroutines keep busy: renewals leave in time all the same.
func TestBusyProcessKeepsItsLease(t *testing.T) {
	t.Parallel()
	w := worker.Spawn(t, "busy holder", server.Shared(t).Addr(), unique(t), "3s", "6s")
	if line := nextLine(t, w); line != "held until <nil>" {
		t.Error(line)
	}
	must(t, w.Wait())
}
