// Package fleet lets an example run itself in several processes, as a service does: locks between goroutines
// of one process would need no Redis.
//
// The parent starts the children from its own executable and talks to them in JSON. On a child's standard input
// come its job and the signal to begin; on its standard output go word that it is ready and its result. A
// closed input ends the child's context, so that children end with their parent however that ends.
package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/group"
	"github.com/holdfast-go/holdfast/examples/internal/server"
)

// childEnv marks the environment of a child.
const childEnv = "HOLDFAST_EXAMPLE_CHILD"

// grace is how long a child may go on after its context has ended, before it is killed.
const grace = 5 * time.Second

// Process is one of the children, with what each process of a service has: a go-redis client, and one holdfast
// client on it.
type Process struct {
	Number int // from 1
	Redis  *redis.Client
	Client *holdfast.Client
}

// Work is what a child does once all of them are ready. If ctx ends meanwhile, it returns what it has done until
// then; its error then does not count.
type Work[J, R any] func(ctx context.Context, p *Process, job J) (R, error)

// Main is the main function of an example. In the first process it parses the flags and calls parent, with a server
// and with a context that an interrupt ends; in the processes that Run starts, which see no flags, child. An error
// is printed and makes the exit status 1.
func Main[J, R any](name string, parent func(ctx context.Context, srv *server.Server) error, child Work[J, R]) {
	if os.Getenv(childEnv) == "" {
		server.Main(name, parent)
		return
	}
	err := serve(name, child)
	if err == nil {
		return
	}
	if !errors.Is(err, errStopped) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	}
	os.Exit(1)
}

// errStopped is the error of a child that was stopped before it had a result. The parent knows.
var errStopped = errors.New("stopped")

// Repeat returns the same job for n processes.
func Repeat[J any](n int, job J) []J { return slices.Repeat([]J{job}, n) }

// Run runs a child for each job, all beginning at the same moment, and returns their results in the same
// order. When ctx ends, the children stop, and their results are partial. When a child fails, so does Run.
func Run[R, J any](ctx context.Context, srv *server.Server, jobs []J) ([]R, error) {
	results := make([]R, len(jobs))
	begin := make(chan struct{}) // closed by the last child that gets ready
	var ready atomic.Int64
	err := group.Each(ctx, len(jobs), func(ctx context.Context, i int) error {
		gate := func() error {
			if ready.Add(1) == int64(len(jobs)) {
				close(begin)
			}
			select {
			case <-begin:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		order := order[J]{Addr: srv.Addr, Number: i + 1, Job: jobs[i]}
		if err := start(ctx, order, &results[i], gate); err != nil {
			return fmt.Errorf("process %d: %w", i+1, err)
		}
		return nil
	})
	if ctx.Err() != nil {
		err = nil
	}
	return results, err
}

// order is what a child is told.
type order[J any] struct {
	Addr   string
	Number int
	Job    J
}

// start runs one child from its start to its end.
func start[J, R any](ctx context.Context, job order[J], result *R, gate func() error) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Cancel = stdin.Close // the child then ends by itself
	cmd.WaitDelay = grace
	if err := cmd.Start(); err != nil {
		return err
	}
	said := converse(json.NewEncoder(stdin), json.NewDecoder(stdout), job, result, gate)
	_ = stdin.Close()
	ended := cmd.Wait()
	switch {
	case said == nil && cmd.ProcessState.Success():
		return nil // Wait reports the end of ctx as an error, but the result is here
	case !cmd.ProcessState.Success():
		return ended // the child has said why
	default:
		return said
	}
}

// converse is the parent's side of the protocol.
func converse(to *json.Encoder, from *json.Decoder, job, result any, gate func() error) error {
	if err := to.Encode(job); err != nil {
		return err
	}
	var ready bool
	if err := from.Decode(&ready); err != nil {
		return err
	}
	if err := gate(); err != nil {
		return err
	}
	if err := to.Encode(true); err != nil {
		return err
	}
	return from.Decode(result)
}

// serve is the child's side of the protocol.
func serve[J, R any](name string, work Work[J, R]) error {
	signal.Ignore(os.Interrupt) // Ctrl-C reaches the parent too, which closes our input
	from, to := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	var order order[J]
	if err := from.Decode(&order); err != nil {
		return fmt.Errorf("read the job: %w", err)
	}
	p, err := newProcess(name, order.Addr, order.Number)
	if err != nil {
		return err
	}
	defer p.close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	begin := make(chan struct{})
	go func() { // lasts as long as the process
		defer cancel()
		var word bool
		if from.Decode(&word) == nil {
			close(begin)
			_ = from.Decode(&word) // nothing comes: it returns when the input is closed
		}
	}()
	if err := to.Encode(true); err != nil {
		return err
	}
	select {
	case <-begin:
	case <-ctx.Done():
		return errStopped
	}
	result, err := work(ctx, p, order.Job)
	if err != nil && ctx.Err() == nil {
		return err
	}
	return to.Encode(result)
}

func newProcess(name, addr string, number int) (*Process, error) {
	rdb, err := server.Connect(addr)
	if err != nil {
		return nil, err
	}
	client, err := holdfast.New(rdb, holdfast.Label(fmt.Sprintf("%s-%d", name, number)))
	if err != nil {
		return nil, err
	}
	return &Process{Number: number, Redis: rdb, Client: client}, nil
}

// close closes the client with a context of its own: that of the work may have ended. It gives up after a while, for
// the server may have gone together with the parent, and leases end what was not released.
func (p *Process) close() {
	ctx, cancel := context.WithTimeout(context.Background(), grace/2)
	defer cancel()
	_ = p.Client.Close(ctx)
	_ = p.Redis.Close()
}
