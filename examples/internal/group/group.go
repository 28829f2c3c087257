// Package group runs a function in several goroutines, by golang.org/x/sync/errgroup.
package group

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// Each runs f for 0 … n-1, each in a goroutine of its own, and waits for all of them. The first error ends the
// context of the others and is returned.
func Each(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for i := range n {
		g.Go(func() error { return f(ctx, i) })
	}
	return g.Wait()
}
