package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// contend has workers use locks until ctx ends.
func contend(ctx context.Context, client *holdfast.Client) {
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for ctx.Err() == nil {
				_ = round(ctx, client)
			}
		})
	}
	workers.Wait()
}

// round uses a lock of every kind, and gives up on one.
func round(ctx context.Context, client *holdfast.Client) error {
	prices := client.RWLock("example:prices")
	return errors.Join(
		client.Mutex("example:orders").Do(ctx, work),
		client.FairLock("example:tickets").Do(ctx, work),
		prices.RDo(ctx, work),
		prices.Do(ctx, work),
		client.Semaphore("example:api", 2).Do(ctx, 1, work),
		client.Mutex("example:report", holdfast.Wait(20*time.Millisecond)).Do(ctx, work),
	)
}

// work takes 5 to 25 ms.
func work(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(5*time.Millisecond + rand.N(20*time.Millisecond)):
		return nil
	}
}
