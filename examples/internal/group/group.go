// Package group runs a function in several goroutines. A program of yours would use golang.org/x/sync/errgroup.
package group

import (
	"context"
	"sync"
)

// Each runs f for 0 … n-1, each in a goroutine of its own, and waits for all of them. The first error ends the
// context of the others and is returned.
func Each(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		wg    sync.WaitGroup
		once  sync.Once
		first error
	)
	for i := range n {
		wg.Go(func() {
			if err := f(ctx, i); err != nil {
				once.Do(func() { first = err; cancel() })
			}
		})
	}
	wg.Wait()
	return first
}
