package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/hold"
	"github.com/holdfast-go/holdfast/internal/docs/examples"
)

func Example() {
	rdb, stop := examples.Redis() // in a service: redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer stop()
	client, err := holdfast.New(rdb)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(context.Background())

	ctx := context.Background()
	err = client.Mutex("orders:42").Do(ctx, func(ctx context.Context) error {
		fmt.Println("nobody else works on order 42")
		return nil // a real job passes ctx on: it ends if the lock is lost
	})
	fmt.Println(err)
	// Output:
	// nobody else works on order 42
	// <nil>
}

func ExampleNew() {
	rdb, stop := examples.Redis()
	defer stop()
	_, err := holdfast.New(rdb, holdfast.Label("two words"))
	fmt.Println(errors.Is(err, holdfast.ErrInvalid))

	client, err := holdfast.New(rdb,
		holdfast.Prefix("shop:"),                          // keys and channels begin with it
		holdfast.Label("billing-3"),                       // what Inspect shows of this client
		holdfast.Logger(slog.Default()),                   // nil logs nothing
		holdfast.Defaults(holdfast.Lease(10*time.Second)), // for every primitive
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(context.Background())
	hold, err := client.Mutex("orders:42").Lock(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hold.Release(context.Background())
	fmt.Println(rdb.Keys(context.Background(), "*").Val())
	// Output:
	// true
	// [shop:mutex:orders:42]
}

func ExampleClient_Close() {
	client, stop := examples.Client()
	defer stop()
	ctx := context.Background()
	hold, err := client.Mutex("orders:42").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}

	// A fresh context: the one that a signal has ended would give running Do functions no time.
	ending, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	fmt.Println(client.Close(ending))

	fmt.Println(errors.Is(hold.Err(), holdfast.ErrClosed)) // it was released
	_, err = client.Mutex("orders:42").Lock(ctx)
	fmt.Println(errors.Is(err, holdfast.ErrClosed))
	// Output:
	// <nil>
	// true
	// true
}

func ExampleClient_Mutex() {
	client, stop := examples.Client()
	defer stop()
	ctx := context.Background()
	orders := client.Mutex("orders:42") // a name: sends nothing, may be kept and shared
	hold, err := orders.Lock(ctx)       // waits, no longer than ctx
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hold.Release(ctx)

	_, err = orders.TryLock(ctx) // the same goroutine, but not a context of the hold: like anybody else
	fmt.Println(errors.Is(err, holdfast.ErrNotAcquired))
	again, err := orders.TryLock(hold.Context(ctx)) // re-enters
	fmt.Println(err, again.Token() == hold.Token())
	fmt.Println(again.Release(ctx), hold.Release(ctx))
	fmt.Println(errors.Is(hold.Release(ctx), holdfast.ErrReleased))
	// Output:
	// true
	// <nil> true
	// <nil> <nil>
	// true
}

func ExampleClient_FairLock() {
	client, stop := examples.Client()
	defer stop()
	ctx := context.Background()
	tickets := client.FairLock("tickets")
	first, err := tickets.Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan string, 2)
	for i, name := range []string{"Ann", "Bob"} {
		go func() {
			served <- "" // about to queue
			_ = tickets.Do(ctx, func(context.Context) error {
				served <- name
				return nil
			})
		}()
		<-served
		queued(ctx, tickets.Inspect, i+1)
	}
	_ = first.Release(ctx)
	fmt.Println(<-served, <-served)
	// Output: Ann Bob
}

// queued waits until n are in the queue.
func queued(ctx context.Context, inspect func(context.Context) (holdfast.State, error), n int) {
	for {
		if state, err := inspect(ctx); err != nil || len(state.Queue) == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func ExampleClient_RWLock() {
	client, stop := examples.Client()
	defer stop()
	ctx := context.Background()
	config := client.RWLock("config")

	reader, _ := config.RLock(ctx)
	another, _ := config.RLock(ctx)
	_, err := config.TryLock(ctx)
	fmt.Println("while two read, a writer gets:", errors.Is(err, holdfast.ErrNotAcquired))
	_, err = config.Lock(reader.Context(ctx))
	fmt.Println("a reader that wants to write:", errors.Is(err, holdfast.ErrUpgrade))
	_, _ = reader.Release(ctx), another.Release(ctx)

	writer, _ := config.Lock(ctx)
	below, _ := config.RLock(writer.Context(ctx)) // reading what one writes
	_ = writer.Release(ctx)                       // now it only reads: a downgrade
	third, err := config.TryRLock(ctx)
	fmt.Println("after the downgrade others read:", err == nil)
	_, _ = below.Release(ctx), third.Release(ctx)
	// Output:
	// while two read, a writer gets: true
	// a reader that wants to write: true
	// after the downgrade others read: true
}

func ExampleClient_Semaphore() {
	client, stop := examples.Client()
	defer stop()
	ctx := context.Background()
	gpu := client.Semaphore("gpu-memory", 16) // GiB, over all processes

	err := gpu.Do(ctx, 12, func(ctx context.Context) error {
		_, err := gpu.TryAcquire(ctx, 8)
		fmt.Println("8 more:", errors.Is(err, holdfast.ErrNotAcquired))
		small, err := gpu.TryAcquire(ctx, 4)
		if err != nil {
			return err
		}
		defer small.Release(ctx)
		usage, err := gpu.Inspect(ctx)
		fmt.Println("in use:", usage.InUse, "free:", usage.Free)
		return err
	})
	fmt.Println(err)
	// Output:
	// 8 more: true
	// in use: 16 free: 0
	// <nil>
}

func ExampleClient_Inspect() {
	client, stop := examples.Client()
	defer stop()
	ctx := context.Background()
	hold, _ := client.Mutex("orders:42").Lock(ctx)
	defer hold.Release(ctx)

	state, err := client.Inspect(ctx, holdfast.Entry{Kind: "mutex", Name: "orders:42"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, h := range state.Holders {
		fmt.Println(h.Client == client.ID(), h.Label, h.Depth, h.Token == hold.Token(), h.LeaseLeft > 20*time.Second)
	}
	fmt.Println("waiting:", len(state.Queue))
	// Output:
	// true example 1 true true
	// waiting: 0
}

func ExampleObserve() {
	client, stop := examples.Client(holdfast.Observe(holdfast.Observer{
		Acquired: func(_ context.Context, l hold.Lock, a hold.Acquisition) {
			fmt.Println("acquired", l.Kind, l.Name, a.How)
		},
		Released: func(_ context.Context, l hold.Lock, held time.Duration, err error) {
			fmt.Println("released", l.Name, err)
		},
	}))
	defer stop()
	_ = client.Mutex("orders:42").Do(context.Background(), func(context.Context) error { return nil })
	// Output:
	// acquired mutex orders:42 at once
	// released orders:42 <nil>
}

func ExampleLogger() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil)).With("component", "locks")
	client, stop := examples.Client(holdfast.Logger(log))
	defer stop()
	fmt.Println(client.Mutex("orders:42").Name())
	// Output: orders:42
}

func ExamplePollOnly() {
	client, stop := examples.Client(holdfast.PollOnly()) // a proxy without pub/sub: who waits asks about once a second
	defer stop()
	err := client.Mutex("orders:42").Do(context.Background(), func(context.Context) error { return nil })
	fmt.Println(err)
	// Output: <nil>
}

func ExampleWithoutHolds() {
	client, stop := examples.Client()
	defer stop()
	orders := client.Mutex("orders:42")
	err := orders.Do(context.Background(), func(ctx context.Context) error {
		_, inside := orders.Held(ctx)
		_, stillInside := orders.Held(holdfast.WithoutHolds(ctx))
		fmt.Println(inside, stillInside)
		// Work that goes on after this function must not count as inside, nor end with it.
		background := holdfast.WithoutHolds(context.WithoutCancel(ctx))
		_, err := orders.TryLock(background)
		fmt.Println(errors.Is(err, holdfast.ErrNotAcquired))
		return nil
	})
	fmt.Println(err)
	// Output:
	// true false
	// true
	// <nil>
}

func ExampleLease() {
	client, stop := examples.Client()
	defer stop()
	ctx := context.Background()
	hold, err := client.Mutex("orders:42", holdfast.Lease(2*time.Second)).Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hold.Release(ctx)
	before := hold.Deadline()
	time.Sleep(time.Second) // work; meanwhile the lease is renewed, every third of it
	fmt.Println(hold.Valid(), hold.Deadline().After(before))
	// Output: true true
}

func ExampleFixedLease() {
	client, stop := examples.Client()
	defer stop()
	ctx := context.Background()
	hold, err := client.Mutex("orders:42", holdfast.FixedLease(time.Second)).Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(hold.Extend(ctx)) // from now on a second again
	<-hold.Done()                 // then it is lost
	fmt.Println(errors.Is(hold.Err(), holdfast.ErrLost))
	fmt.Println(errors.Is(hold.Release(ctx), holdfast.ErrLost))
	// Output:
	// <nil>
	// true
	// true
}

func ExampleMaxHold() {
	client, stop := examples.Client()
	defer stop()
	err := client.Mutex("orders:42", holdfast.MaxHold(200*time.Millisecond)).Do(context.Background(), func(ctx context.Context) error {
		<-ctx.Done() // a worker that is stuck
		return nil
	})
	fmt.Println(errors.Is(err, holdfast.ErrLost))
	// Output: true
}

func ExampleWait() {
	client, stop := examples.Client()
	defer stop()
	ctx := context.Background()
	hold, _ := client.Mutex("orders:42").Lock(ctx)
	defer hold.Release(ctx)

	_, err := client.Mutex("orders:42", holdfast.Wait(50*time.Millisecond)).Lock(ctx)
	fmt.Println(errors.Is(err, holdfast.ErrNotAcquired))

	limited, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err = client.Mutex("orders:42").Lock(limited)
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output:
	// true
	// true
}

func ExampleNonReentrant() {
	client, stop := examples.Client()
	defer stop()
	m := client.Mutex("orders:42", holdfast.NonReentrant())
	err := m.Do(context.Background(), func(ctx context.Context) error {
		_, err := m.TryLock(ctx)
		return err
	})
	fmt.Println(errors.Is(err, holdfast.ErrNotAcquired))
	// Output: true
}

func ExampleReplicas() {
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "mymaster", SentinelAddrs: []string{"sentinel:26379"}})
	defer rdb.Close()
	client, err := holdfast.New(rdb)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(context.Background())
	orders := client.Mutex("orders:42", holdfast.Replicas(1, 500*time.Millisecond))
	_, err = orders.Lock(context.Background())
	if errors.Is(err, holdfast.ErrUnavailable) {
		fmt.Println("no replica acknowledged it in time: it was undone")
	}
}
