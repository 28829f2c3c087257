package turnstile

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// crew counts goroutines (or other work) so that Close can wait for them, though not for ever. Unlike a
// sync.WaitGroup it may grow while somebody waits.
type crew struct {
	n    atomic.Int64
	idle chan struct{} // of capacity 1: n dropped to 0 since somebody looked
}

func newCrew() *crew { return &crew{idle: make(chan struct{}, 1)} }

// Go runs f in a goroutine of the crew.
func (c *crew) Go(f func()) {
	c.add()
	go func() {
		defer c.done()
		f()
	}()
}

func (c *crew) add() { c.n.Add(1) }

func (c *crew) done() {
	if c.n.Add(-1) == 0 {
		select {
		case c.idle <- struct{}{}:
		default:
		}
	}
}

// wait returns when nothing runs, or with an error when ctx ends. One at a time may wait.
func (c *crew) wait(ctx context.Context) error {
	for {
		n := c.n.Load()
		if n == 0 {
			return nil
		}
		select {
		case <-c.idle:
		case <-ctx.Done():
			return fmt.Errorf("%d still at work: %w", n, context.Cause(ctx))
		}
	}
}

// quietLog logs each message at most once in ten seconds, so that an outage with thousands of locks stays readable.
type quietLog struct {
	log *slog.Logger

	mu      sync.Mutex
	last    map[string]time.Time
	dropped map[string]int
}

const quietFor = 10 * time.Second

func newQuietLog(log *slog.Logger) *quietLog {
	return &quietLog{log: log, last: make(map[string]time.Time), dropped: make(map[string]int)}
}

// warn logs at level warn. msg must be a constant: it is what is counted.
func (q *quietLog) warn(msg string, attrs ...any) {
	q.mu.Lock()
	now := time.Now()
	if last, ok := q.last[msg]; ok && now.Sub(last) < quietFor {
		q.dropped[msg]++
		q.mu.Unlock()
		return
	}
	q.last[msg] = now
	n := q.dropped[msg]
	delete(q.dropped, msg)
	q.mu.Unlock()
	if n > 0 {
		attrs = append(attrs, "not logged since", n)
	}
	q.log.Warn(msg, attrs...)
}
