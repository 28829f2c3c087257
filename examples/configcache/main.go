// Configcache keeps a configuration in Redis that many readers in several processes read and one refresher
// replaces, field by field. A holdfast read-write lock lets the readers overlap, lets the refresher in although
// they keep coming, and keeps everybody from seeing a configuration that is half the old and half the new one.
//
//	go run ./examples/configcache
//	go run ./examples/configcache -unsafe
//
// The second one does without the lock and shows what that prevents. It runs on a server embedded in the first
// process, or on that of REDIS_ADDR, with names of its own that it removes at the end. Without -unsafe the exit
// status is 1 if a promise was broken.
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
	"github.com/holdfast-go/holdfast/examples/internal/waits"
)

var (
	processes = flag.Int("processes", 3, "how many processes read")
	readers   = flag.Int("readers", 4, "how many goroutines read in each process")
	versions  = flag.Int("versions", 20, "how many times the configuration is replaced")
	every     = flag.Duration("every", 50*time.Millisecond, "how long the refresher pauses between two versions")
	use       = flag.Duration("use", 5*time.Millisecond, "how long a reader stays inside")
	unsafe    = flag.Bool("unsafe", false, "do without the lock")
)

// job is what a process is to do.
type job struct {
	Name     string // of the lock, and of the keys
	Unsafe   bool
	Readers  int // goroutines
	Versions int // after the last one all stop
	Every    time.Duration
	Use      time.Duration
}

func main() { fleet.Main("configcache", run, work) }

func run(ctx context.Context, srv *server.Server) error {
	if *processes < 1 || *readers < 1 || *versions < 1 || *every < 0 || *use < 0 {
		return errors.New("-processes, -readers and -versions must be at least 1, -every and -use not negative")
	}
	j := job{
		Name: server.Unique("configcache"), Unsafe: *unsafe,
		Readers: *readers, Versions: *versions, Every: *every, Use: *use,
	}
	how := "a read-write lock"
	if *unsafe {
		how = "no lock"
	}
	fmt.Printf("a configuration in %d versions, 1 refresher, %d processes × %d readers, %s, on %v\n\n", *versions, *processes, *readers, how, srv)
	return play(ctx, srv, j)
}

// play writes the first version and has the processes go on from there.
func play(ctx context.Context, srv *server.Server, j job) error {
	s := newStore(srv.Redis, j.Name)
	if err := s.write(ctx, newConfig(0)); err != nil {
		return fmt.Errorf("write the first version: %w", err)
	}
	defer s.remove(context.WithoutCancel(ctx))
	results, err := fleet.Run[result](ctx, srv, fleet.Repeat(1+*processes, j))
	if err != nil {
		return err
	}
	return report(results)
}

// report prints the table and judges.
func report(results []result) error {
	var reads, torn, most int
	var waited waits.Waits
	refresher, others := results[0], results[1:]
	for _, r := range others {
		reads += r.Reads
		torn += r.Torn
		most = max(most, r.Most)
		waited = append(waited, r.Waits...)
	}
	all := *processes * *readers
	table.Row("versions", "%d", refresher.Versions)
	table.Row("reads", "%d", reads)
	table.Row("half-written", "%d", torn)
	table.Row("readers at once", "%d of %d", most, all)
	table.Row("met by refresher", "%d", refresher.Met)
	table.Row("readers' waits", "%v", waited)
	table.Row("refresher's waits", "%v", refresher.Waits)
	switch {
	case *unsafe:
		return nil
	case torn > 0 || refresher.Met > 0:
		return fmt.Errorf("the lock did not hold: %d half-written configurations seen, %d readers met by the refresher", torn, refresher.Met)
	case refresher.Versions != *versions:
		return fmt.Errorf("the refresher wrote %d versions of %d", refresher.Versions, *versions)
	case most < 2 && all > 1:
		return errors.New("the readers did not overlap")
	}
	return nil
}
