package mutex_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/docs/examples"
)

func ExampleMutex_Do() {
	client, stop := examples.Client() // on an embedded server
	defer stop()
	orders := client.Mutex("orders:42")
	audit := func(ctx context.Context) error {
		return orders.Do(ctx, func(context.Context) error { // re-enters: ctx comes from the outer hold
			fmt.Println("audited")
			return nil
		})
	}
	err := orders.Do(context.Background(), func(ctx context.Context) error {
		fmt.Println("locked")
		return audit(ctx)
	})
	fmt.Println(err)
	// Output:
	// locked
	// audited
	// <nil>
}

// The function's error and the loss of the lock are both in what Do returns.
func ExampleMutex_Do_lost() {
	client, stop := examples.Client()
	defer stop()
	orders := client.Mutex("orders:42")
	errHalfDone := errors.New("half done")
	err := orders.Do(context.Background(), func(ctx context.Context) error {
		_ = orders.ForceRelease(context.WithoutCancel(ctx)) // somebody takes it away
		<-ctx.Done()
		fmt.Println(errors.Is(context.Cause(ctx), holdfast.ErrLost))
		return errHalfDone
	})
	fmt.Println(errors.Is(err, errHalfDone), errors.Is(err, holdfast.ErrLost))
	// Output:
	// true
	// true true
}

func ExampleMutex_Lock() {
	client, stop := examples.Client()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // for the wait, not for the hold
	defer cancel()
	hold, err := client.Mutex("orders:42").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hold.Release(ctx) // works although ctx is done

	fmt.Println(hold.Name(), hold.Valid())
	// Output: orders:42 true
}

func ExampleMutex_TryLock() {
	client, stop := examples.Client()
	defer stop()
	ctx := context.Background()
	nightly := client.Mutex("nightly")
	hold, err := nightly.TryLock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hold.Release(ctx)

	_, err = nightly.TryLock(ctx)
	switch {
	case errors.Is(err, holdfast.ErrNotAcquired):
		fmt.Println("another one is at it")
	case errors.Is(err, holdfast.ErrUnavailable):
		fmt.Println("Redis is away")
	}
	// Output: another one is at it
}

func ExampleMutex_Held() {
	client, stop := examples.Client()
	defer stop()
	orders := client.Mutex("orders:42")
	save := func(ctx context.Context) error {
		hold, ok := orders.Held(ctx)
		if !ok {
			return errors.New("save must be called under the lock")
		}
		fmt.Println("saved with a token:", hold.Token() > 0)
		return nil
	}
	fmt.Println(save(context.Background()))
	fmt.Println(orders.Do(context.Background(), save))
	// Output:
	// save must be called under the lock
	// saved with a token: true
	// <nil>
}

func ExampleMutex_Inspect() {
	client, stop := examples.Client()
	defer stop()
	ctx := context.Background()
	orders := client.Mutex("orders:42")
	hold, _ := orders.Lock(ctx)
	state, err := orders.Inspect(ctx)
	fmt.Println(state.Held(), state.Holders[0].Label, state.Holders[0].Depth, len(state.Queue), err)

	_ = hold.Release(ctx)
	state, err = orders.Inspect(ctx)
	fmt.Println(state.Held(), err)
	// Output:
	// true example 1 0 <nil>
	// false <nil>
}

func ExampleMutex_ForceRelease() {
	client, stop := examples.Client()
	defer stop()
	ctx := context.Background()
	orders := client.Mutex("orders:42", holdfast.Lease(time.Second))
	hold, _ := orders.Lock(ctx)

	fmt.Println(orders.ForceRelease(ctx)) // for emergencies: the holder may be at work
	<-hold.Done()                         // it is told, here by its next renewal
	fmt.Println(errors.Is(hold.Err(), holdfast.ErrLost))
	// Output:
	// <nil>
	// true
}
