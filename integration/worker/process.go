package worker

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/integration/internal/child"
)

// Process is a running worker. Safe for concurrent use, except that Stop, Cont
// and Kill fail the test on trouble and so belong to its goroutine.
type Process struct {
	// Stdin is the worker's standard input. Closing it is a polite way to tell
	// the worker that it may go.
	Stdin io.WriteCloser

	t     testing.TB
	cmd   *exec.Cmd
	lines chan string   // closed by relay
	done  chan struct{} // closed by reap once err is set and the output complete
	err   error

	mu     sync.Mutex // guards output
	output bytes.Buffer
}

// Spawn starts the worker registered under name. When the test ends, the worker
// is killed; if the test failed, its output is logged.
func Spawn(t testing.TB, name string, args ...string) *Process {
	t.Helper()
	if !ready {
		// Without it the child would run the tests and spawn children, for ever.
		t.Fatal("worker: TestMain must begin with worker.Main()")
	}
	if _, ok := registry[name]; !ok {
		t.Fatalf("worker: no %q registered", name)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatalf("worker: %v", err)
	}
	p := &Process{t: t, cmd: child.Command(self, args...), lines: make(chan string), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env+"="+name)
	if testing.CoverMode() != "" && os.Getenv("GOCOVERDIR") == "" {
		// A binary built with -cover complains at exit unless it has a place for its data.
		p.cmd.Env = append(p.cmd.Env, "GOCOVERDIR="+t.TempDir())
	}
	if err := p.start(); err != nil {
		t.Fatalf("worker %s: %v", name, err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("output of worker %s %s:\n%s", name, strings.Join(args, " "), p.Output())
		}
	})
	return p
}

func (p *Process) start() error {
	stdin, err1 := p.cmd.StdinPipe()
	stdout, err2 := p.cmd.StdoutPipe()
	stderr, err3 := p.cmd.StderrPipe()
	if err := errors.Join(err1, err2, err3, p.cmd.Start()); err != nil {
		return err
	}
	p.Stdin = stdin
	fromStdout := make(chan string)
	var readers sync.WaitGroup
	readers.Go(func() { p.read(stdout, fromStdout) })
	readers.Go(func() { p.read(stderr, nil) })
	go p.relay(fromStdout)
	go p.reap(&readers)
	return nil
}

// read collects what one stream brings and passes its lines on, if to is not nil.
func (p *Process) read(stream io.Reader, to chan<- string) {
	if to != nil {
		defer close(to)
	}
	r := bufio.NewReader(stream)
	for {
		line, err := r.ReadString('\n')
		p.mu.Lock()
		p.output.WriteString(line)
		p.mu.Unlock()
		if to != nil && line != "" {
			to <- strings.TrimRight(line, "\r\n")
		}
		if err != nil {
			return
		}
	}
}

// relay queues lines without bound, so that a worker never blocks on a test
// that does not read them. It ends when all are read or the worker is gone and
// its test over.
func (p *Process) relay(from <-chan string) {
	defer close(p.lines)
	var queue []string
	for from != nil || len(queue) > 0 {
		var to chan<- string
		var head string
		if len(queue) > 0 {
			to, head = p.lines, queue[0]
		}
		select {
		case line, ok := <-from:
			if !ok {
				from = nil
				continue
			}
			queue = append(queue, line)
		case to <- head:
			queue = queue[1:]
		case <-p.abandoned(from):
			return
		}
	}
}

// abandoned fires at the end of the test, when nobody will read any more. While
// the worker can still print it must not, or read would block on relay.
func (p *Process) abandoned(from <-chan string) <-chan struct{} {
	if from != nil {
		return nil
	}
	return p.t.Context().Done()
}

// reap sets err after both streams have ended: exec.Cmd.Wait closes the pipes.
func (p *Process) reap(readers *sync.WaitGroup) {
	readers.Wait()
	p.err = p.cmd.Wait()
	close(p.done)
}

// Wait waits for the worker to end and returns nil if its function did. All of
// its output has been read then. It may be called more than once.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Done is closed when the worker has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Lines brings what the worker prints to standard output, line by line, and is
// closed after the last one. The worker is never kept waiting.
func (p *Process) Lines() <-chan string { return p.lines }

// Output returns what the worker has printed so far on both streams.
func (p *Process) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.String()
}

// Pid returns the worker's process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Stop freezes the worker, as a long garbage collection or a suspended machine
// would.
func (p *Process) Stop() {
	p.t.Helper()
	if err := child.Stop(p.cmd.Process); err != nil {
		p.t.Fatalf("worker: Stop: %v", err)
	}
}

// Cont lets a frozen worker go on.
func (p *Process) Cont() {
	p.t.Helper()
	if err := child.Cont(p.cmd.Process); err != nil {
		p.t.Fatalf("worker: Cont: %v", err)
	}
}

// Kill ends the worker at once, frozen or not, and waits until it is gone.
// Killing one that has ended does nothing.
func (p *Process) Kill() {
	_ = child.Cont(p.cmd.Process)
	_ = p.cmd.Process.Kill() // fails only if it has ended
	<-p.done
}
