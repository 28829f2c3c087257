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
	"net/http/httptest"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/fleet"
	"github.com/holdfast-go/holdfast/examples/internal/server"
	"github.com/holdfast-go/holdfast/examples/internal/table"
	"github.com/holdfast-go/holdfast/examples/internal/waits"
)

var (
	processes = flag.Int("processes", 4, "how many processes call")
	callers   = flag.Int("callers", 4, "how many goroutines call in each process")
	calls     = flag.Int("calls", 15, "how many calls each of them makes")
	limit     = flag.Int("limit", 3, "how many calls the API allows at once")
	latency   = flag.Duration("latency", 20*time.Millisecond, "how long a call takes")
	unsafe    = flag.Bool("unsafe", false, "call without the semaphore")
)

// job is what a process is to do.
type job struct {
	URL     string // of the API
	Name    string // of the semaphore
	Limit   int
	Unsafe  bool
	Callers int
	Calls   int // by each caller
}

func main() { fleet.Main("slowapi", run, work) }

func run(ctx context.Context, srv *server.Server) error {
	if *processes < 1 || *callers < 1 || *calls < 1 || *limit < 1 || *latency < 0 {
		return errors.New("-processes, -callers, -calls and -limit must be at least 1, -latency not negative")
	}
	slow := &api{limit: *limit, latency: *latency}
	httpd := httptest.NewServer(slow)
	defer httpd.Close()
	j := job{URL: httpd.URL, Name: server.Unique("slowapi"), Limit: *limit, Unsafe: *unsafe, Callers: *callers, Calls: *calls}
	how := "a semaphore"
	if *unsafe {
		how = "no semaphore"
	}
	fmt.Printf("an API that takes %v and allows %d calls at once, %d processes × %d callers × %d calls, %s, on %v\n\n",
		*latency, *limit, *processes, *callers, *calls, how, srv)
	results, err := fleet.Run[result](ctx, srv, fleet.Repeat(*processes, j))
	if err != nil {
		return err
	}
	return report(slow, results)
}

// report prints the table and judges.
func report(slow *api, results []result) error {
	var waited waits.Waits
	var took time.Duration
	for _, r := range results {
		waited = append(waited, r.Waits...)
		took = max(took, r.Took)
	}
	seen := slow.seen()
	table.Row("served", "%d", seen.Served)
	table.Row("refused", "%d", seen.Refused)
	table.Row("most at once", "%d of %d", seen.Most, slow.limit)
	if took > 0 {
		table.Row("calls/s", "%.0f, at most %.0f are possible", float64(seen.Served)/took.Seconds(), float64(slow.limit)/slow.latency.Seconds())
	}
	table.Row("waits", "%v", waited)
	for i, r := range results {
		table.Row(fmt.Sprintf("process %d", i+1), "%d served", r.Served)
	}
	switch total := len(results) * *callers * *calls; {
	case *unsafe:
		return nil
	case seen.Most > slow.limit || seen.Refused > 0:
		return fmt.Errorf("the semaphore did not hold: %d calls at once, %d refused", seen.Most, seen.Refused)
	case seen.Served != total:
		return fmt.Errorf("%d of %d calls were served", seen.Served, total)
	}
	return nil
}
