package mass

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/worker"
)

// OrderConfig is for RoleOrder.
type OrderConfig struct {
	Addr    string
	Clients int
	Waiters int
	Groups  int // the waiters come in this many groups, one group after the other
}

// Order is what came out.
type Order struct {
	Inversions int // grants to a group after a later group had one
	Tokens     int // that did not grow
	Served     int
}

// queueWithin bounds how long a group may take to stand in the queue.
const queueWithin = 30 * time.Second

// RoleOrder lets waiters queue for a held fair lock, each group when Inspect has shown the one before to be in the
// queue, releases, and sees in which order they are served. With as many groups as waiters the order is exact;
// within a group nobody knows who came first.
func RoleOrder(c *worker.Console) error {
	var config OrderConfig
	if err := c.Configure(&config); err != nil {
		return err
	}
	ctx := context.Background()
	locks := make([]*holdfast.FairLock, config.Clients+1)
	for i := range locks {
		rdb := redis.NewClient(&redis.Options{Addr: config.Addr})
		client, err := holdfast.New(rdb)
		if err != nil {
			return err
		}
		locks[i] = client.FairLock("bench:order")
	}
	holder := locks[config.Clients]
	hold, err := holder.Lock(ctx)
	if err != nil {
		return err
	}
	s := &served{last: hold.Token()}
	var waiting sync.WaitGroup
	n := 0
	for group := range config.Groups {
		for ; n < config.Waiters*(group+1)/config.Groups; n++ {
			lock := locks[n%config.Clients]
			waiting.Go(func() { s.serve(ctx, lock, group) })
		}
		if err := queued(ctx, holder, n); err != nil {
			return err
		}
	}
	if err := hold.Release(ctx); err != nil {
		return err
	}
	waiting.Wait()
	if s.err != nil {
		return s.err
	}
	return c.Say(s.order)
}

// queued returns when n wait.
func queued(ctx context.Context, lock *holdfast.FairLock, n int) error {
	for end := time.Now().Add(queueWithin); ; time.Sleep(100 * time.Microsecond) {
		state, err := lock.Inspect(ctx)
		if err != nil {
			return err
		}
		if len(state.Queue) == n {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d instead of %d in the queue", len(state.Queue), n)
		}
	}
}

// served is written by those who hold the fair lock. The mutex only makes sure that a broken one is seen as such.
type served struct {
	mu    sync.Mutex // guards the rest
	order Order
	group int
	last  int64
	err   error
}

func (s *served) serve(ctx context.Context, lock *holdfast.FairLock, group int) {
	hold, err := lock.Lock(ctx)
	s.mu.Lock()
	if err != nil {
		s.err = err
		s.mu.Unlock()
		return
	}
	s.order.Served++
	if group < s.group {
		s.order.Inversions++
	}
	if hold.Token() <= s.last {
		s.order.Tokens++
	}
	s.group, s.last = max(s.group, group), hold.Token()
	s.mu.Unlock()
	_ = hold.Release(ctx) // what fails shows in those who wait
}
