// Slowapi calls a slow API from several processes at once, and never more often at the same time than it
// allows: a holdfast semaphore counts over all of them.
//
//	go run ./examples/slowapi
//	go run ./examples/slowapi -limit 5
//	go run ./examples/slowapi -unsafe
//
// The API is an HTTP server in the first process. It counts the calls that it serves at once, and refuses those
// beyond the limit, as such an API does; -unsafe calls it without the semaphore. The semaphore is on a server
// embedded in the first process, or on that of REDIS_ADDR, under a name of its own. Without -unsafe the exit
// status is 1 if the API ever saw too many calls.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/fleet"
	"github.com/holdfast-go/holdfast/examples/internal/server"
	"github.com/holdfast-go/holdfast/examples/internal/waits"
)

// job is what a process is to do.
type job struct {
	Addr    string
	Process int
	URL     string // of the API
	Name    string // of the semaphore
	Limit   int
	Unsafe  bool
	Callers int
	Calls   int // by each caller
}

func main() { fleet.Main("slowapi", run, work) }

func run(ctx context.Context) error {
	processes := flag.Int("processes", 4, "how many `processes` call")
	callers := flag.Int("callers", 4, "how many `goroutines` call in each process")
	calls := flag.Int("calls", 15, "how many `calls` each of them makes")
	limit := flag.Int("limit", 3, "how many `calls` the API allows at once")
	latency := flag.Duration("latency", 20*time.Millisecond, "how `long` a call takes")
	unsafe := flag.Bool("unsafe", false, "call without the semaphore")
	flag.Parse()
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	case *processes < 1 || *callers < 1 || *calls < 1 || *limit < 1 || *latency < 0:
		return errors.New("-processes, -callers, -calls and -limit must be at least 1, -latency not negative")
	}

	srv, err := server.Start(ctx)
	if err != nil {
		return err
	}
	defer srv.Close()
	slow := &api{limit: *limit, latency: *latency}
	url, stop, err := serve(slow)
	if err != nil {
		return err
	}
	defer stop()
	jobs := make([]job, *processes)
	name := server.Unique("slowapi")
	for i := range jobs {
		jobs[i] = job{
			Addr: srv.Addr, Process: i + 1, URL: url, Name: name, Limit: *limit, Unsafe: *unsafe, Callers: *callers, Calls: *calls,
		}
	}
	how := "a semaphore"
	if *unsafe {
		how = "no semaphore"
	}
	fmt.Printf("an API that takes %v and allows %d calls at once, %d processes × %d callers × %d calls, %s, on %v\n\n",
		*latency, *limit, *processes, *callers, *calls, how, srv)
	results, err := fleet.Run[result](ctx, jobs)
	if err != nil && ctx.Err() == nil {
		return err
	}
	return report(ctx, slow, jobs, results)
}

// serve puts the API on a port of the loopback interface.
func serve(handler http.Handler) (url string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	httpd := &http.Server{Handler: handler, ReadHeaderTimeout: time.Second}
	go func() { _ = httpd.Serve(listener) }() // until stop
	return "http://" + listener.Addr().String(), func() { _ = httpd.Close() }, nil
}

// report prints the table and judges.
func report(ctx context.Context, slow *api, jobs []job, results []result) error {
	row := func(label, format string, args ...any) {
		fmt.Printf("%14s: "+format+"\n", append([]any{label}, args...)...)
	}
	var waited waits.Waits
	var took time.Duration
	for _, r := range results {
		waited = append(waited, r.Waits...)
		took = max(took, r.Took)
	}
	seen := slow.seen()
	row("served", "%d", seen.Served)
	row("refused", "%d", seen.Refused)
	row("most at once", "%d of %d", seen.Most, slow.limit)
	if took > 0 {
		row("calls/s", "%.0f, at most %.0f are possible", float64(seen.Served)/took.Seconds(), float64(slow.limit)/slow.latency.Seconds())
	}
	row("waits", "%v", waited)
	for i, r := range results {
		row(fmt.Sprintf("process %d", i+1), "%d served", r.Served)
	}
	switch total := len(jobs) * jobs[0].Callers * jobs[0].Calls; {
	case ctx.Err() != nil:
		return errors.New("interrupted")
	case jobs[0].Unsafe:
		return nil
	case seen.Most > slow.limit || seen.Refused > 0:
		return fmt.Errorf("the semaphore did not hold: %d calls at once, %d refused", seen.Most, seen.Refused)
	case seen.Served != total:
		return fmt.Errorf("%d of %d calls were served", seen.Served, total)
	}
	return nil
}
