package rwlock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/docs/examples"
)

func ExampleRWLock_RDo() {
	client, stop := examples.Client() // on an embedded server
	defer stop()
	config := client.RWLock("config")
	err := config.RDo(context.Background(), func(context.Context) error {
		return config.RDo(context.Background(), func(context.Context) error { // not re-entered: a second reader
			fmt.Println("two read")
			return nil
		})
	})
	fmt.Println(err)
	// Output:
	// two read
	// <nil>
}

func ExampleRWLock_Do() {
	client, stop := examples.Client()
	defer stop()
	config := client.RWLock("config")
	err := config.Do(context.Background(), func(ctx context.Context) error {
		_, err := config.TryRLock(context.Background())
		fmt.Println("others read:", !errors.Is(err, holdfast.ErrNotAcquired))
		return config.RDo(ctx, func(context.Context) error {
			fmt.Println("who writes reads")
			return nil
		})
	})
	fmt.Println(err)
	// Output:
	// others read: false
	// who writes reads
	// <nil>
}

// A reader that finds something to change cannot become a writer: two that tried would wait for each other. It
// releases, takes the write lock, and checks again.
func ExampleRWLock_Lock() {
	client, stop := examples.Client()
	defer stop()
	ctx := context.Background()
	config, version := client.RWLock("config"), 1

	outdated := false
	_ = config.RDo(ctx, func(ctx context.Context) error {
		outdated = version < 2
		_, err := config.Lock(ctx)
		fmt.Println(errors.Is(err, holdfast.ErrUpgrade))
		return nil
	})
	if outdated {
		_ = config.Do(ctx, func(context.Context) error {
			if version < 2 { // nobody else did it meanwhile
				version = 2
			}
			return nil
		})
	}
	fmt.Println(version)
	// Output:
	// true
	// 2
}
