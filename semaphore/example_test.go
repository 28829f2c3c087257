package semaphore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/docs/examples"
)

func ExampleSemaphore_Do() {
	client, stop := examples.Client() // on an embedded server
	defer stop()
	calls := client.Semaphore("slow-api", 3) // at most 3 at once, over all processes
	err := calls.Do(context.Background(), 1, func(ctx context.Context) error {
		usage, err := calls.Inspect(ctx)
		fmt.Println("in use:", usage.InUse, "free:", usage.Free)
		return err
	})
	fmt.Println(err)
	// Output:
	// in use: 1 free: 2
	// <nil>
}

func ExampleSemaphore_Acquire() {
	client, stop := examples.Client()
	defer stop()
	ctx := context.Background()
	memory := client.Semaphore("memory", 10)
	hold, err := memory.Acquire(ctx, 7)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hold.Release(ctx)

	_, err = memory.TryAcquire(ctx, 4)
	fmt.Println("4 more:", errors.Is(err, holdfast.ErrNotAcquired))
	_, err = memory.Acquire(ctx, 11)
	fmt.Println("more than there is:", errors.Is(err, holdfast.ErrInvalid))
	// Output:
	// 4 more: true
	// more than there is: true
}
