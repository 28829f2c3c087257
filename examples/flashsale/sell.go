package main

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/examples/internal/fleet"
	"github.com/holdfast-go/holdfast/examples/internal/group"
	"github.com/holdfast-go/holdfast/examples/internal/waits"
)

// result is what a process reports.
type result struct {
	Sold      int           // what its buyers believe that they bought
	Conflicts int           // sales that began anew
	Waits     waits.Waits   // for the lock, one per sale; without a lock, until the attempt that succeeded
	Took      time.Duration // from the opening until its last buyer left
}

// sell is what each process does.
func sell(ctx context.Context, p *fleet.Process, j job) (result, error) {
	s := &shop{Process: p, job: j, way: ways[j.Lock]}
	opened := time.Now()
	err := group.Each(ctx, j.Buyers, func(ctx context.Context, _ int) error { return s.buyer(ctx) })
	s.result.Took = time.Since(opened)
	return s.result, err
}

// shop is the shop of one process.
type shop struct {
	*fleet.Process
	job job
	way way

	mu     sync.Mutex // guards result
	result result
}

// A way buys one item. It calls entered when it may begin, again when it must begin anew, and reports whether there
// was an item left to buy.
type way func(s *shop, ctx context.Context, entered func()) (bool, error)

// none is the way of -unsafe.
const none = "no lock"

// ways are what -lock can be.
var ways = map[string]way{
	"mutex":  (*shop).buyUnderMutex,
	"fair":   (*shop).buyUnderFairLock,
	"watch":  (*shop).buyWatching,
	"script": (*shop).buyByScript,
	none:     (*shop).buyUnsafely,
}

func (s *shop) buyUnderMutex(ctx context.Context, entered func()) (bought bool, err error) {
	err = s.Client.Mutex(s.job.Stock).Do(ctx, func(ctx context.Context) (err error) {
		entered()
		bought, err = s.buyOne(ctx)
		return err
	})
	return bought, err
}

func (s *shop) buyUnderFairLock(ctx context.Context, entered func()) (bought bool, err error) {
	err = s.Client.FairLock(s.job.Stock).Do(ctx, func(ctx context.Context) (err error) {
		entered()
		bought, err = s.buyOne(ctx)
		return err
	})
	return bought, err
}

func (s *shop) buyUnsafely(ctx context.Context, entered func()) (bool, error) {
	entered()
	return s.buyOne(ctx)
}

// buyer buys, one item after the other, until there is none.
func (s *shop) buyer(ctx context.Context) error {
	for {
		var (
			asked    = time.Now()
			waited   time.Duration
			attempts int
		)
		bought, err := s.way(s, ctx, func() {
			waited = time.Since(asked)
			attempts++
		})
		s.record(bought, waited, attempts) // also if the lock was lost just then: the buyer believes that it has the item
		if err != nil || !bought {
			return err
		}
	}
}

// buyOne is the critical section: what was read must still be true when it is written.
func (s *shop) buyOne(ctx context.Context) (bool, error) {
	left, err := s.Redis.Get(ctx, s.job.Stock).Int()
	if err != nil || left <= 0 {
		return false, err
	}
	if err := s.think(ctx); err != nil {
		return false, err // the lock was lost, or somebody pressed Ctrl-C: nothing is sold
	}
	if err := s.Redis.Set(ctx, s.job.Stock, left-1, redis.KeepTTL).Err(); err != nil {
		return false, err
	}
	return true, nil
}

func (s *shop) think(ctx context.Context) error {
	select {
	case <-time.After(s.job.Think):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *shop) record(bought bool, waited time.Duration, attempts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.result.Conflicts += max(attempts-1, 0)
	if bought {
		s.result.Sold++
		s.result.Waits = append(s.result.Waits, waited)
	}
}
