package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/fleet"
	"github.com/holdfast-go/holdfast/examples/internal/group"
	"github.com/holdfast-go/holdfast/examples/internal/server"
	"github.com/holdfast-go/holdfast/examples/internal/waits"
)

// result is what a process reports.
type result struct {
	Sold  int           // what its buyers believe that they bought
	Waits waits.Waits   // for the lock, one per sale
	Took  time.Duration // from the opening until its last buyer left
}

// sell is what each process does.
func sell(ctx context.Context, j job, ready func() error) (result, error) {
	rdb, err := server.Connect(j.Addr)
	if err != nil {
		return result{}, err
	}
	defer rdb.Close()
	client, err := holdfast.New(rdb, holdfast.Label(fmt.Sprintf("shop-%d", j.Process)))
	if err != nil {
		return result{}, err
	}
	defer fleet.Close(client)
	s := &shop{job: j, rdb: rdb, locked: locker(client, j)}

	if err := ready(); err != nil {
		return result{}, err
	}
	opened := time.Now()
	err = group.Each(ctx, j.Buyers, func(ctx context.Context, _ int) error { return s.buyer(ctx) })
	s.result.Took = time.Since(opened)
	if ctx.Err() != nil {
		err = nil // interrupted: what was sold until then counts
	}
	return s.result, err
}

// locker returns how a sale is done: under the lock that j asks for, or just so.
func locker(client *holdfast.Client, j job) func(context.Context, func(context.Context) error) error {
	switch {
	case j.Unsafe:
		return func(ctx context.Context, f func(context.Context) error) error { return f(ctx) }
	case j.Lock == "fair":
		return client.FairLock(j.Stock).Do
	default:
		return client.Mutex(j.Stock).Do
	}
}

// shop is the shop of one process.
type shop struct {
	job    job
	rdb    *redis.Client
	locked func(ctx context.Context, f func(ctx context.Context) error) error

	mu     sync.Mutex // guards result
	result result
}

// buyer buys, one item after the other, until there is none.
func (s *shop) buyer(ctx context.Context) error {
	for {
		var (
			asked  = time.Now()
			waited time.Duration
			bought bool
		)
		err := s.locked(ctx, func(ctx context.Context) (err error) {
			waited = time.Since(asked)
			bought, err = s.buyOne(ctx)
			return err
		})
		if bought { // also if the lock was lost just then: the buyer believes that it has the item
			s.record(waited)
		}
		if err != nil || !bought {
			return err
		}
	}
}

// buyOne is the critical section: what was read must still be true when it is written. It reports whether
// there was an item left to buy.
func (s *shop) buyOne(ctx context.Context) (bool, error) {
	left, err := s.rdb.Get(ctx, s.job.Stock).Int()
	if err != nil || left <= 0 {
		return false, err
	}
	select {
	case <-time.After(s.job.Think):
	case <-ctx.Done():
		return false, context.Cause(ctx) // the lock was lost, or somebody pressed Ctrl-C: nothing is sold
	}
	if err := s.rdb.Set(ctx, s.job.Stock, left-1, redis.KeepTTL).Err(); err != nil {
		return false, err
	}
	return true, nil
}

func (s *shop) record(waited time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.result.Sold++
	s.result.Waits = append(s.result.Waits, waited)
}
