// Flashsale sells a stock from several processes at once. The stock is a plain counter in Redis that each sale
// reads, thinks about and writes back, under a holdfast lock: not one item too many is sold.
//
//	go run ./examples/flashsale
//	go run ./examples/flashsale -lock fair
//	go run ./examples/flashsale -unsafe
//
// The last one sells without the lock and shows what that prevents. It runs on a server embedded in the first
// process, or on that of REDIS_ADDR, with names of its own that it removes at the end. Without -unsafe the exit
// status is 1 if the sums are not right.
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

// job is what a process is to do.
type job struct {
	Addr    string
	Process int
	Stock   string // the key of the counter, and the name of the lock
	Lock    string // mutex or fair
	Unsafe  bool
	Buyers  int
	Think   time.Duration
}

func main() { fleet.Main("flashsale", run, sell) }

func run(ctx context.Context) error {
	processes := flag.Int("processes", 4, "how many `processes` sell")
	buyers := flag.Int("buyers", 4, "how many `goroutines` buy in each process")
	stock := flag.Int("stock", 500, "how many `items` there are")
	think := flag.Duration("think", time.Millisecond, "how `long` a sale thinks between reading and writing the stock")
	lock := flag.String("lock", "mutex", "mutex or fair: the `kind` of lock")
	unsafe := flag.Bool("unsafe", false, "sell without a lock")
	flag.Parse()
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	case *processes < 1 || *buyers < 1 || *stock < 1 || *think < 0:
		return errors.New("-processes, -buyers and -stock must be at least 1, -think not negative")
	case *lock != "mutex" && *lock != "fair":
		return fmt.Errorf("-lock %q: mutex or fair are possible", *lock)
	}

	srv, err := server.Start(ctx)
	if err != nil {
		return err
	}
	defer srv.Close()
	jobs := make([]job, *processes)
	for i := range jobs {
		jobs[i] = job{
			Addr: srv.Addr, Process: i + 1, Stock: server.Unique("flashsale"),
			Lock: *lock, Unsafe: *unsafe, Buyers: *buyers, Think: *think,
		}
		jobs[i].Stock = jobs[0].Stock
	}
	how := *lock
	if *unsafe {
		how = "no lock"
	}
	fmt.Printf("flash sale of %d items, %d processes × %d buyers, %s, on %v\n\n", *stock, *processes, *buyers, how, srv)
	return trade(ctx, *stock, jobs)
}

// trade puts the stock on the shelf, has the processes sell it, and counts.
func trade(ctx context.Context, stock int, jobs []job) error {
	rdb, err := server.Connect(jobs[0].Addr)
	if err != nil {
		return err
	}
	defer rdb.Close()
	cleanup := context.WithoutCancel(ctx) // for what must be done after an interrupt as well
	shelf := jobs[0].Stock
	if err := rdb.Set(ctx, shelf, stock, time.Hour).Err(); err != nil {
		return fmt.Errorf("stock the shelf: %w", err)
	}
	defer rdb.Del(cleanup, shelf)

	results, err := fleet.Run[result](ctx, jobs)
	if err != nil && ctx.Err() == nil {
		return err
	}
	left, err := rdb.Get(cleanup, shelf).Int()
	if err != nil {
		return fmt.Errorf("look at the shelf: %w", err)
	}
	b := balance{Stock: stock, Left: left, Results: results}
	fmt.Print(b)
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted")
	case jobs[0].Unsafe:
		return nil
	}
	return b.check()
}
