// Package worker runs parts of a measurement in processes of their own, by starting the own binary again. A
// process that runs for one slice only has no garbage and no goroutine of another contender; one that hangs is
// killed and reported.
//
// Parent and worker talk in lines of JSON: the configuration first, then words from the parent, results from the
// worker.
package worker

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// env names the role of a process that is a worker.
const env = "HOLDFAST_BENCH_ROLE"

// orphaned is how long a worker has to end by itself after its parent has hung up.
const orphaned = 30 * time.Second

// Role is what a worker does.
type Role func(c *Console) error

// Main turns a process started by Start into its worker and never returns there. Elsewhere it does nothing. It
// comes first in main and in TestMain.
func Main(roles map[string]Role) {
	name, isWorker := os.LookupEnv(env)
	if !isWorker {
		return
	}
	role, ok := roles[name]
	if !ok {
		fail(fmt.Errorf("no role %q", name))
	}
	if err := role(newConsole(os.Stdin, os.Stdout)); err != nil {
		fail(fmt.Errorf("%s: %w", name, err))
	}
	os.Exit(0)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// Console is how a worker talks to its parent.
type Console struct {
	lines <-chan string
	out   *json.Encoder
}

func newConsole(in io.Reader, out io.Writer) *Console {
	lines := make(chan string, 16)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(in); s.Scan(); {
			lines <- s.Text()
		}
		time.AfterFunc(orphaned, func() { fail(errors.New("still there after the parent has gone")) })
	}()
	return &Console{lines: lines, out: json.NewEncoder(out)}
}

// Configure reads the first line.
func (c *Console) Configure(config any) error {
	line, ok := <-c.lines
	if !ok {
		return io.ErrUnexpectedEOF
	}
	return json.Unmarshal([]byte(line), config)
}

// Await waits until the parent says word.
func (c *Console) Await(word string) error {
	line, ok := <-c.lines
	if !ok {
		return fmt.Errorf("the parent hung up instead of %q", word)
	}
	if line != word {
		return fmt.Errorf("the parent said %q instead of %q", line, word)
	}
	return nil
}

// AwaitEnd waits until the parent hangs up.
func (c *Console) AwaitEnd() {
	for range c.lines { // nothing more is expected
	}
}

// Say tells the parent.
func (c *Console) Say(result any) error { return c.out.Encode(result) }
