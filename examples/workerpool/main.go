// Workerpool has pools of workers in several processes share one limit: light jobs take one unit of it, heavy ones three.
//
//	go run ./examples/workerpool
//	go run ./examples/workerpool -limit 10
//	go run ./examples/workerpool -unsafe
//
// The jobs are in a list in Redis. Each process has more workers than the limit allows in all, so that it is the
// semaphore, and not the size of a pool, which keeps the load within bounds; -unsafe does without it. It runs on a server
// embedded in the first process, or on that of REDIS_ADDR.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/examples/internal/fleet"
	"github.com/holdfast-go/holdfast/examples/internal/group"
	"github.com/holdfast-go/holdfast/examples/internal/server"
	"github.com/holdfast-go/holdfast/examples/internal/table"
)

const heavy = 3 // units; a light job takes 1

var (
	processes = flag.Int("processes", 3, "how many processes work")
	workers   = flag.Int("workers", 6, "how many goroutines work in each process")
	jobs      = flag.Int("jobs", 120, "how many jobs there are; every third one is heavy")
	limit     = flag.Int("limit", 5, "how many units all of them may take at once")
	unsafe    = flag.Bool("unsafe", false, "work without the limit")
)

// setup is what each process is told.
type setup struct {
	Name    string
	Workers int
	Limit   int
	Unsafe  bool
}

// result is what a process reports.
type result struct {
	Done int
	Load int // the most units in use at once, in all processes, that it saw
}

func main() { fleet.Main("workerpool", run, work) }

func run(ctx context.Context, srv *server.Server) error {
	if *processes < 1 || *workers < 1 || *jobs < 1 || *limit < heavy {
		return fmt.Errorf("-processes, -workers and -jobs must be at least 1, -limit %d", heavy)
	}
	s := setup{Name: server.Unique("workerpool"), Workers: *workers, Limit: *limit, Unsafe: *unsafe}
	defer srv.Redis.Del(context.WithoutCancel(ctx), s.queue(), s.load())
	for i := range *jobs {
		units := 1
		if i%3 == 0 {
			units = heavy
		}
		if err := srv.Redis.RPush(ctx, s.queue(), units).Err(); err != nil {
			return err
		}
	}
	fmt.Printf("%d jobs, %d processes × %d workers, %d units at once, on %v\n\n", *jobs, *processes, *workers, *limit, srv)
	results, err := fleet.Run[result](ctx, srv, fleet.Repeat(*processes, s))
	if err != nil {
		return err
	}
	done, load := 0, 0
	for i, r := range results {
		table.Row(fmt.Sprintf("process %d", i+1), "%d done", r.Done)
		done += r.Done
		load = max(load, r.Load)
	}
	table.Row("done", "%d of %d", done, *jobs)
	table.Row("units at once", "%d of %d", load, *limit)
	if load > *limit && !*unsafe {
		return fmt.Errorf("%d units were in use at once", load)
	}
	return nil
}

func (s setup) queue() string { return s.Name + ":queue" }
func (s setup) load() string  { return s.Name + ":load" }

// work is what each process does.
func work(ctx context.Context, p *fleet.Process, s setup) (result, error) {
	units := p.Client.Semaphore(s.Name, s.Limit)
	results := make([]result, s.Workers)
	err := group.Each(ctx, s.Workers, func(ctx context.Context, i int) error {
		for {
			// A job that was taken from the list is lost with its process. Where it must not be, use a stream with a
			// consumer group, or a queue that redelivers.
			job, err := p.Redis.LPop(ctx, s.queue()).Int()
			if errors.Is(err, redis.Nil) {
				return nil
			} else if err != nil {
				return err
			}
			do := func(ctx context.Context) error { return results[i].do(ctx, p.Redis, s, job) }
			if s.Unsafe {
				err = do(ctx)
			} else {
				err = units.Do(ctx, job, do) // the head of the queue waits until its share is free: heavy jobs do not starve
			}
			if err != nil {
				return err
			}
		}
	})
	var all result
	for _, r := range results {
		all.Done += r.Done
		all.Load = max(all.Load, r.Load)
	}
	return all, err
}

// do does a job. ctx ends if its units are lost: then it must stop, for others may have them.
func (r *result) do(ctx context.Context, rdb *redis.Client, s setup, units int) error {
	load, err := rdb.IncrBy(ctx, s.load(), int64(units)).Result()
	if err != nil {
		return err
	}
	defer rdb.DecrBy(context.WithoutCancel(ctx), s.load(), int64(units))
	r.Load = max(r.Load, int(load))
	select {
	case <-time.After(time.Duration(units) * 3 * time.Millisecond):
		r.Done++
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
