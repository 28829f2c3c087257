package worker_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/worker"
)

func init() {
	worker.Register("echo", func(args []string) error {
		fmt.Println("args:", strings.Join(args, ","))
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			fmt.Println("echo:", in.Text())
		}
		return in.Err()
	})
	worker.Register("fail", func([]string) error { return errors.New("as told") })
	worker.Register("chatter", func([]string) error {
		for i := range 100_000 {
			fmt.Println(i)
		}
		return nil
	})
	worker.Register("count", func([]string) error {
		for i := 0; ; i++ {
			fmt.Println(i)
			time.Sleep(time.Millisecond)
		}
	})
}

func TestMain(m *testing.M) {
	worker.Main()
	os.Exit(m.Run())
}

func next(t *testing.T, p *worker.Process) string {
	t.Helper()
	select {
	case line, ok := <-p.Lines():
		if !ok {
			t.Fatal("no more lines")
		}
		return line
	case <-time.After(10 * time.Second):
		t.Fatal("no line within 10 s")
	}
	return ""
}

func TestWorkerConverses(t *testing.T) {
	t.Parallel()
	p := worker.Spawn(t, "echo", "a", "-test.v") // not a flag of the child's
	if line := next(t, p); line != "args: a,-test.v" {
		t.Fatal(line)
	}
	fmt.Fprintln(p.Stdin, "hello")
	if line := next(t, p); line != "echo: hello" {
		t.Fatal(line)
	}
	_ = p.Stdin.Close()
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := p.Output(); got != "args: a,-test.v\necho: hello\n" {
		t.Fatalf("output %q", got)
	}
	if _, open := <-p.Lines(); open {
		t.Fatal("a line out of nowhere")
	}
}

func TestErrorOfAWorkerIsItsExitCode(t *testing.T) {
	t.Parallel()
	p := worker.Spawn(t, "fail")
	var exit *exec.ExitError
	if err := p.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("Wait: %v", err)
	}
	if !strings.Contains(p.Output(), "as told") {
		t.Fatalf("output %q", p.Output())
	}
	p.Kill() // to no effect
}

func TestUnreadLinesDoNotBlockAWorker(t *testing.T) {
	t.Parallel()
	p := worker.Spawn(t, "chatter")
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for range p.Lines() {
		n++
	}
	if n != 100_000 {
		t.Fatalf("%d lines", n)
	}
}

func TestStoppedWorkerStandsStillAndKillEndsIt(t *testing.T) {
	t.Parallel()
	p := worker.Spawn(t, "count")
	next(t, p)
	p.Stop()
	standstill := func() string {
		before := p.Output()
		for { // until the pipe is empty
			time.Sleep(20 * time.Millisecond)
			after := p.Output()
			if after == before {
				return after
			}
			before = after
		}
	}
	stopped := standstill()
	p.Cont()
	for p.Output() == stopped {
		next(t, p)
	}
	p.Stop()
	p.Kill()
	var exit *exec.ExitError
	if err := p.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Fatalf("Wait after Kill: %v", err)
	}
}
