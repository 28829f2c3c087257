// Flashsale sells a stock from several processes at once. The stock is a plain counter in Redis that each sale
// reads, thinks about and writes back, under a holdfast lock: not one item too many is sold.
//
//	go run ./examples/flashsale
//	go run ./examples/flashsale -lock fair
//	go run ./examples/flashsale -lock watch
//	go run ./examples/flashsale -lock script
//	go run ./examples/flashsale -unsafe
//
// watch and script are answers without a lock, by what Redis itself has: WATCH and MULTI, and one Lua script (see
// lockfree.go). For a counter in Redis they are the better ones. -unsafe shows what all of them prevent.
//
// It runs on a server embedded in the first process, or on that of REDIS_ADDR, with names of its own that it removes
// at the end. Without -unsafe the exit status is 1 if the sums are not right.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/fleet"
	"github.com/holdfast-go/holdfast/examples/internal/server"
)

var (
	processes = flag.Int("processes", 4, "how many processes sell")
	buyers    = flag.Int("buyers", 4, "how many goroutines buy in each process")
	stock     = flag.Int("stock", 500, "how many items there are")
	think     = flag.Duration("think", time.Millisecond, "how long a sale thinks between reading and writing the stock")
	lock      = flag.String("lock", "mutex", "how a sale is kept safe: mutex, fair, watch or script")
	unsafe    = flag.Bool("unsafe", false, "just sell")
)

// job is what a process is to do.
type job struct {
	Stock  string // the key of the counter, and the name of the lock
	Lock   string // one of ways
	Buyers int
	Think  time.Duration
}

func main() { fleet.Main("flashsale", run, sell) }

func run(ctx context.Context, srv *server.Server) error {
	switch {
	case *processes < 1 || *buyers < 1 || *stock < 1 || *think < 0:
		return errors.New("-processes, -buyers and -stock must be at least 1, -think not negative")
	case ways[*lock] == nil || *lock == none:
		return fmt.Errorf("-lock %q: mutex, fair, watch or script are possible", *lock)
	case *unsafe:
		*lock = none
	}
	j := job{Stock: server.Unique("flashsale"), Lock: *lock, Buyers: *buyers, Think: *think}
	fmt.Printf("flash sale of %d items, %d processes × %d buyers, %s, on %v\n\n", *stock, *processes, *buyers, *lock, srv)
	return trade(ctx, srv, j)
}

// trade puts the stock on the shelf, has the processes sell it, and counts.
func trade(ctx context.Context, srv *server.Server, j job) error {
	cleanup := context.WithoutCancel(ctx) // for what must be done after an interrupt as well
	if err := srv.Redis.Set(ctx, j.Stock, *stock, time.Hour).Err(); err != nil {
		return fmt.Errorf("stock the shelf: %w", err)
	}
	defer srv.Redis.Del(cleanup, j.Stock)

	results, err := fleet.Run[result](ctx, srv, fleet.Repeat(*processes, j))
	if err != nil {
		return err
	}
	left, err := srv.Redis.Get(cleanup, j.Stock).Int()
	if err != nil {
		return fmt.Errorf("look at the shelf: %w", err)
	}
	b := balance{Stock: *stock, Left: left, Results: results}
	b.print()
	if *unsafe {
		return nil
	}
	return b.check()
}
