// Cron runs a job at every tick on one of many hosts, each a process of its own.
//
//	go run ./examples/cron
//	go run ./examples/cron -forget
//	go run ./examples/cron -unsafe
//
// Whoever holds the lock is the leader and runs the job, until its term is over or the lock is lost. A lock alone does
// not make that once per tick: the next leader may take over while the tick lasts. So the leader keeps the last run in
// Redis, under the lock. -forget leaves that out, and -unsafe the lock as well: see what runs twice.
//
// It runs on a server embedded in the first process, or on that of REDIS_ADDR.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/fleet"
	"github.com/holdfast-go/holdfast/examples/internal/server"
	"github.com/holdfast-go/holdfast/examples/internal/table"
)

var (
	hosts  = flag.Int("hosts", 3, "how many processes there are")
	ticks  = flag.Int("ticks", 20, "after how many ticks all stop")
	every  = flag.Duration("every", 100*time.Millisecond, "how long a tick lasts")
	term   = flag.Duration("term", 250*time.Millisecond, "how long a leader stays")
	forget = flag.Bool("forget", false, "do not keep the last run")
	unsafe = flag.Bool("unsafe", false, "no lock: each host runs the job")
)

// schedule is what each process is told. Hosts agree on the number of a tick as well as their clocks agree.
type schedule struct {
	Name           string
	Begin          time.Time
	Ticks          int
	Every, Term    time.Duration
	Forget, Unsafe bool
}

// result is what a process reports.
type result struct {
	Runs  int
	Terms int
}

func main() { fleet.Main("cron", run, work) }

func run(ctx context.Context, srv *server.Server) error {
	if *hosts < 1 || *ticks < 1 || *every <= 0 || *term <= 0 {
		return errors.New("-hosts, -ticks, -every and -term must be positive")
	}
	s := schedule{
		Name: server.Unique("cron"), Begin: time.Now().Add(time.Second).Truncate(*every), Ticks: *ticks,
		Every: *every, Term: *term, Forget: *forget || *unsafe, Unsafe: *unsafe,
	}
	fmt.Printf("a job at each of %d ticks, on one of %d hosts, on %v\n\n", *ticks, *hosts, srv)
	defer srv.Redis.Del(context.WithoutCancel(ctx), s.lastRun(), s.journal())
	results, err := fleet.Run[result](ctx, srv, fleet.Repeat(*hosts, s))
	if err != nil {
		return err
	}
	for i, r := range results {
		table.Row(fmt.Sprintf("host %d", i+1), "%d runs in %d terms", r.Runs, r.Terms)
	}
	runs, err := srv.Redis.HVals(context.WithoutCancel(ctx), s.journal()).Result()
	if err != nil {
		return err
	}
	twice := 0
	for _, n := range runs {
		if n != "1" {
			twice++
		}
	}
	table.Row("ticks run", "%d of %d", len(runs), *ticks) // one is left out if a host stalls for the length of a tick
	table.Row("run twice", "%d", twice)
	if twice > 0 && !s.Forget {
		return fmt.Errorf("the job ran more than once at %d ticks", twice)
	}
	return nil
}
