package main

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/fleet"
	"github.com/holdfast-go/holdfast/examples/internal/group"
	"github.com/holdfast-go/holdfast/examples/internal/waits"
)

// result is what a process reports.
type result struct {
	Waits waits.Waits

	// Of a process that reads.
	Reads int
	Torn  int // configurations that were not whole
	Most  int // readers at once, in all processes

	// Of the refresher.
	Versions int
	Met      int // readers that were inside while it wrote
}

// work is what each process does: the first one refreshes, the others read.
func work(ctx context.Context, p *fleet.Process, j job) (result, error) {
	c := &cache{job: j, store: newStore(p.Redis, j.Name), lock: p.Client.RWLock(j.Name)}
	var err error
	if p.Number == 1 {
		err = c.refresher(ctx)
	} else {
		err = group.Each(ctx, j.Readers, func(ctx context.Context, _ int) error { return c.reader(ctx) })
	}
	return c.result, err
}

// cache is the configuration as one process works with it.
type cache struct {
	job   job
	store *store
	lock  *holdfast.RWLock

	mu     sync.Mutex // guards result
	result result
}

// reading runs f as a reader.
func (c *cache) reading(ctx context.Context, f func(ctx context.Context) error) error {
	if c.job.Unsafe {
		return f(ctx)
	}
	return c.lock.RDo(ctx, f)
}

// writing runs f as the writer.
func (c *cache) writing(ctx context.Context, f func(ctx context.Context) error) error {
	if c.job.Unsafe {
		return f(ctx)
	}
	return c.lock.Do(ctx, f)
}

// reader reads without a pause until it sees the last version.
func (c *cache) reader(ctx context.Context) error {
	for last := false; !last; {
		asked := time.Now()
		err := c.reading(ctx, func(ctx context.Context) error {
			waited := time.Since(asked)
			seen, readers, err := c.look(ctx)
			if err == nil {
				c.record(seen, readers, waited)
				last = seen.Version >= c.job.Versions
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// look reads the configuration and uses it for a while. It also returns how many readers were inside.
func (c *cache) look(ctx context.Context) (seen config, readers int, err error) {
	if readers, err = c.store.enter(ctx); err != nil {
		return seen, readers, err
	}
	defer func() {
		if left := c.store.leave(ctx); err == nil {
			err = left
		}
	}()
	if seen, err = c.store.read(ctx); err != nil {
		return seen, readers, err
	}
	return seen, readers, sleep(ctx, c.job.Use)
}

func (c *cache) record(seen config, readers int, waited time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.result.Reads++
	if !seen.whole() {
		c.result.Torn++
	}
	c.result.Most = max(c.result.Most, readers)
	c.result.Waits = append(c.result.Waits, waited)
}

// refresher replaces the configuration, one version after the other.
func (c *cache) refresher(ctx context.Context) error {
	for version := 1; version <= c.job.Versions; version++ {
		if err := sleep(ctx, c.job.Every); err != nil {
			return err
		}
		asked := time.Now()
		err := c.writing(ctx, func(ctx context.Context) error {
			c.result.Waits = append(c.result.Waits, time.Since(asked))
			return c.replace(ctx, version)
		})
		if err != nil {
			return err
		}
		c.result.Versions++
	}
	return nil
}

// replace writes a version and counts the readers that are inside before and after.
func (c *cache) replace(ctx context.Context, version int) error {
	before, err := c.store.inside(ctx)
	if err != nil {
		return err
	}
	if err := c.store.write(ctx, newConfig(version)); err != nil {
		return err
	}
	after, err := c.store.inside(ctx)
	c.result.Met += before + after
	return err
}
