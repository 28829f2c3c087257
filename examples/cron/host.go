package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/fleet"
)

func (s schedule) lastRun() string { return s.Name + ":last" }
func (s schedule) journal() string { return s.Name + ":journal" }

// tick returns the number of the current tick, below 0 before the first one.
func (s schedule) tick() int {
	if since := time.Since(s.Begin); since >= 0 {
		return int(since / s.Every)
	}
	return -1
}

// host is one of many.
type host struct {
	*fleet.Process
	schedule
	result result
}

// work is what each host does: it waits to be the leader, leads, and waits again.
func work(ctx context.Context, p *fleet.Process, s schedule) (result, error) {
	h := &host{Process: p, schedule: s}
	lead := p.Client.Mutex(s.Name).Do
	if s.Unsafe {
		lead = func(ctx context.Context, f func(context.Context) error) error { return f(ctx) }
	}
	for h.tick() < s.Ticks {
		err := lead(ctx, h.term)
		if err != nil && !errors.Is(err, holdfast.ErrLost) { // who lost the lock stands in line again
			return h.result, err
		}
	}
	return h.result, nil
}

// term leads for a while. ctx ends if the lock is lost: another host leads then.
func (h *host) term(ctx context.Context) error {
	h.result.Terms++
	over := time.After(h.Term)
	last, err := h.remembered(ctx)
	if err != nil {
		return err
	}
	for {
		if now := h.tick(); now > last && now >= 0 && now < h.Ticks {
			last = now
			if err := h.runAt(ctx, now); err != nil {
				return err
			}
		}
		if h.tick() >= h.Ticks {
			return nil
		}
		select {
		case <-over:
			return nil
		case <-time.After(time.Until(h.Begin.Add(time.Duration(h.tick()+1) * h.Every))):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// remembered returns the tick of the last run on any host.
func (h *host) remembered(ctx context.Context) (int, error) {
	if h.Forget {
		return -1, nil
	}
	last, err := h.Redis.Get(ctx, h.lastRun()).Int()
	if errors.Is(err, redis.Nil) {
		return -1, nil
	}
	return last, err
}

// runAt runs the job. The run is noted before, so that a leader that dies in between leaves it out: at most once. Noted
// after, it would be done again: at least once. Only a job that writes its result together with the note is done exactly
// once.
func (h *host) runAt(ctx context.Context, tick int) error {
	if !h.Forget {
		if err := h.Redis.Set(ctx, h.lastRun(), tick, time.Hour).Err(); err != nil {
			return err
		}
	}
	h.result.Runs++
	return h.Redis.HIncrBy(ctx, h.journal(), strconv.Itoa(tick), 1).Err() // the job of this example
}
