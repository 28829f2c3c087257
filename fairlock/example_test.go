package fairlock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/docs/examples"
)

func ExampleFairLock_Do() {
	client, stop := examples.Client() // on an embedded server
	defer stop()
	err := client.FairLock("tickets").Do(context.Background(), func(ctx context.Context) error {
		fmt.Println("my turn")
		return nil // a real job passes ctx on: it ends if the lock is lost
	})
	fmt.Println(err)
	// Output:
	// my turn
	// <nil>
}

// TryLock does not wait, and does not overtake: it fails while anybody holds the lock, or waits for it.
func ExampleFairLock_TryLock() {
	client, stop := examples.Client()
	defer stop()
	ctx := context.Background()
	tickets := client.FairLock("tickets")
	hold, err := tickets.Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hold.Release(ctx)
	_, err = tickets.TryLock(ctx)
	fmt.Println(errors.Is(err, holdfast.ErrNotAcquired))
	// Output: true
}
