package turnstile

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// crew counts goroutines (or other work) so that Close can wait for them, though not for ever. Unlike a
// sync.WaitGroup it may grow while somebody waits.
type crew struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // made by wait, closed when n drops to 0
}

// Go runs f in a goroutine of the crew.
func (c *crew) Go(f func()) {
	c.add()
	go func() {
		defer c.done()
		f()
	}()
}

func (c *crew) add() {
	c.mu.Lock()
	c.n++
	c.mu.Unlock()
}

func (c *crew) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n--
	if c.n == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// wait returns when nothing runs, or with an error when ctx ends.
func (c *crew) wait(ctx context.Context) error {
	for {
		c.mu.Lock()
		n := c.n
		if n > 0 && c.idle == nil {
			c.idle = make(chan struct{})
		}
		idle := c.idle
		c.mu.Unlock()
		if n == 0 {
			return nil
		}
		select {
		case <-idle:
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
