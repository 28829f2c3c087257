package worker

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/pinned"
)

// maxLine bounds what a worker says at once.
const maxLine = 64 << 20

// Process is a running worker, seen from its parent. It belongs to one goroutine.
type Process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    chan []byte   // lines; closed by relay
	done   chan struct{} // closed by relay once err is set
	err    error
	stderr tail
}

// Start runs a role with a configuration, on one core if cpu is not negative.
func Start(role string, config any, cpu int) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: pinned.Command(cpu, self), out: make(chan []byte, 16), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env+"="+role)
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.relay(stdout)
	line, err := json.Marshal(config)
	if err == nil {
		err = p.Tell(string(line))
	}
	if err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

// relay brings the lines of the worker and then reaps it.
func (p *Process) relay(stdout io.Reader) {
	s := bufio.NewScanner(stdout)
	s.Buffer(nil, maxLine)
	for s.Scan() {
		p.out <- bytes.Clone(s.Bytes())
	}
	close(p.out)
	p.err = errors.Join(s.Err(), p.cmd.Wait())
	close(p.done)
}

// Tell says a word to the worker.
func (p *Process) Tell(word string) error {
	_, err := io.WriteString(p.in, word+"\n")
	return err
}

// Hear waits for the worker to say something and decodes it into result, which may be nil.
func (p *Process) Hear(result any, timeout time.Duration) error {
	select {
	case line, ok := <-p.out:
		if !ok {
			<-p.done
			return fmt.Errorf("worker ended: %w: %s", orEnd(p.err), p.stderr.String())
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(line, result)
	case <-time.After(timeout):
		return fmt.Errorf("worker silent for %v %s", timeout, p.stderr.String())
	}
}

func orEnd(err error) error {
	if err == nil {
		return io.ErrUnexpectedEOF
	}
	return err
}

// End hangs up and waits until the worker has ended; one that has not in time is killed, which is an error.
func (p *Process) End(timeout time.Duration) error {
	_ = p.in.Close()
	select {
	case <-p.done:
		return p.err
	case <-time.After(timeout):
		p.Kill()
		return fmt.Errorf("did not end within %v", timeout)
	}
}

// Kill ends the worker at once.
func (p *Process) Kill() {
	_ = p.in.Close()
	_ = p.cmd.Process.Kill() // fails only if it has ended
	for range p.out {        // unblocks relay
	}
	<-p.done
}

// Complaints returns the end of what the worker has written to standard error.
func (p *Process) Complaints() string { return p.stderr.String() }

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex // guards text
	text []byte
}

const tailSize = 2000

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if len(t.text) > tailSize {
		t.text = append(t.text[:0], t.text[len(t.text)-tailSize:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
