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
	"github.com/holdfast-go/holdfast/examples/internal/waits"
)

// job is what a process is to do: the first one refreshes, the others read.
type job struct {
	Addr      string
	Process   int
	Name      string // of the lock, and of the keys
	Unsafe    bool
	Refresher bool
	Readers   int // goroutines
	Versions  int // after the last one all stop
	Every     time.Duration
	Use       time.Duration
}

func main() { fleet.Main("configcache", run, work) }

func run(ctx context.Context) error {
	processes := flag.Int("processes", 3, "how many `processes` read")
	readers := flag.Int("readers", 4, "how many `goroutines` read in each process")
	versions := flag.Int("versions", 20, "how many `times` the configuration is replaced")
	every := flag.Duration("every", 50*time.Millisecond, "how `long` the refresher pauses between two versions")
	use := flag.Duration("use", 5*time.Millisecond, "how `long` a reader stays inside")
	unsafe := flag.Bool("unsafe", false, "do without the lock")
	flag.Parse()
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	case *processes < 1 || *readers < 1 || *versions < 1 || *every < 0 || *use < 0:
		return errors.New("-processes, -readers and -versions must be at least 1, -every and -use not negative")
	}

	srv, err := server.Start(ctx)
	if err != nil {
		return err
	}
	defer srv.Close()
	jobs := make([]job, 1+*processes)
	name := server.Unique("configcache")
	for i := range jobs {
		jobs[i] = job{
			Addr: srv.Addr, Process: i + 1, Name: name, Unsafe: *unsafe, Refresher: i == 0,
			Readers: *readers, Versions: *versions, Every: *every, Use: *use,
		}
	}
	how := "a read-write lock"
	if *unsafe {
		how = "no lock"
	}
	fmt.Printf("a configuration in %d versions, 1 refresher, %d processes × %d readers, %s, on %v\n\n", *versions, *processes, *readers, how, srv)
	return play(ctx, jobs)
}

// play writes the first version and has the processes go on from there.
func play(ctx context.Context, jobs []job) error {
	rdb, err := server.Connect(jobs[0].Addr)
	if err != nil {
		return err
	}
	defer rdb.Close()
	s := newStore(rdb, jobs[0].Name)
	if err := s.write(ctx, newConfig(0)); err != nil {
		return fmt.Errorf("write the first version: %w", err)
	}
	defer s.remove(context.WithoutCancel(ctx))
	results, err := fleet.Run[result](ctx, jobs)
	if err != nil && ctx.Err() == nil {
		return err
	}
	return report(ctx, jobs, results)
}

// report prints the table and judges.
func report(ctx context.Context, jobs []job, results []result) error {
	row := func(label, format string, args ...any) {
		fmt.Printf("%18s: "+format+"\n", append([]any{label}, args...)...)
	}
	var reads, torn, most int
	var waited waits.Waits
	refresher, readers := results[0], results[1:]
	for _, r := range readers {
		reads += r.Reads
		torn += r.Torn
		most = max(most, r.Most)
		waited = append(waited, r.Waits...)
	}
	row("versions", "%d", refresher.Versions)
	row("reads", "%d", reads)
	row("half-written", "%d", torn)
	row("readers at once", "%d of %d", most, len(readers)*jobs[0].Readers)
	row("met by refresher", "%d", refresher.Met)
	row("readers' waits", "%v", waited)
	row("refresher's waits", "%v", refresher.Waits)
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted")
	case jobs[0].Unsafe:
		return nil
	case torn > 0 || refresher.Met > 0:
		return fmt.Errorf("the lock did not hold: %d half-written configurations seen, %d readers met by the refresher", torn, refresher.Met)
	case refresher.Versions != jobs[0].Versions:
		return fmt.Errorf("the refresher wrote %d versions of %d", refresher.Versions, jobs[0].Versions)
	case most < 2 && len(readers)*jobs[0].Readers > 1:
		return errors.New("the readers did not overlap")
	}
	return nil
}
