//go:build unix

// Package main_test runs the built command as people do, against live servers.
package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/server"
)

// patience is how long a condition may take to come about on a machine that is busy with other things.
const patience = 15 * time.Second

// bin is where TestMain puts the command.
var bin string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "holdfast-cmd-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	bin = filepath.Join(dir, "holdfast")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	defer server.StopShared()
	return m.Run()
}

// site is a Redis with a prefix of its own, seen from the command line and by library clients.
type site struct {
	t      *testing.T
	url    string
	prefix string
	rdb    redis.UniversalClient
}

// newSite is a site on the server that all tests share.
func newSite(t *testing.T) *site {
	t.Helper()
	t.Parallel()
	srv := server.Shared(t)
	return &site{t, "redis://" + srv.Addr(), "holdfast-cmd:" + strings.ReplaceAll(t.Name(), "/", ":") + ":", srv.Client()}
}

// siteOn is a site on a server of the test's own.
func siteOn(t *testing.T, srv *server.Server) *site {
	t.Helper()
	return &site{t, "redis://" + srv.Addr(), holdfast.DefaultPrefix, srv.Client()}
}

// client is another process, as far as Redis can tell.
func (s *site) client(label string) *holdfast.Client {
	s.t.Helper()
	c, err := holdfast.New(s.rdb, holdfast.Prefix(s.prefix), holdfast.Label(label), holdfast.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			s.t.Errorf("closing %s: %v", label, err)
		}
	})
	return c
}

type locker interface {
	Lock(ctx context.Context) (*holdfast.Hold, error)
}

// lock takes a lock, and keeps it until the test ends or it is released.
func (s *site) lock(l locker) *holdfast.Hold {
	s.t.Helper()
	h, err := l.Lock(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = h.Release(context.Background()) }) // the test may have done it
	return h
}

// wait has somebody wait for a lock until stop is called. It returns when the server knows of it.
func (s *site) wait(c *holdfast.Client, l locker, e holdfast.Entry) (stop func()) {
	s.t.Helper()
	before := len(s.inspect(c, e).Queue)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if h, err := l.Lock(ctx); err == nil {
			<-ctx.Done()
			_ = h.Release(ctx)
		}
	}()
	stop = func() {
		cancel()
		<-done
	}
	s.t.Cleanup(stop)
	s.until("somebody waits for "+e.Name, func() bool { return len(s.inspect(c, e).Queue) > before })
	return stop
}

func (s *site) inspect(c *holdfast.Client, e holdfast.Entry) holdfast.State {
	s.t.Helper()
	state, err := c.Inspect(s.t.Context(), e)
	if err != nil {
		s.t.Fatal(err)
	}
	return state
}

func mutex(name string) holdfast.Entry { return holdfast.Entry{Kind: "mutex", Name: name} }
func fair(name string) holdfast.Entry  { return holdfast.Entry{Kind: "fair", Name: name} }

// until waits for a condition.
func (s *site) until(what string, ok func() bool) {
	s.t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// result is what a run of the command left.
type result struct {
	code     int
	out, err string
}

// command prepares a run without a terminal, also when the tests have one.
func (s *site) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	s.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Env = append(os.Environ(), "REDIS_URL="+s.url, "HOLDFAST_PREFIX="+s.prefix)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// run runs the command to its end.
func (s *site) run(args ...string) result { return s.runWith("", args...) }

func (s *site) runWith(input string, args ...string) result {
	s.t.Helper()
	cmd := s.command(args...)
	cmd.Stdin = strings.NewReader(input)
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	return result{s.code(cmd, cmd.Run()), out.String(), err.String()}
}

func (s *site) code(cmd *exec.Cmd, err error) int {
	s.t.Helper()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok || ok && exit.ExitCode() < 0 {
		s.t.Fatalf("%v: %v", cmd.Args, err)
	}
	return cmd.ProcessState.ExitCode()
}

// want runs the command and checks its exit status and that it prints certain words, to either output.
func (s *site) want(code int, args []string, words ...string) result {
	s.t.Helper()
	r := s.run(args...)
	s.check(r, args, code, words...)
	return r
}

func (s *site) check(r result, args []string, code int, words ...string) {
	s.t.Helper()
	if r.code != code {
		s.t.Errorf("%q: status %d, want %d\n%s%s", args, r.code, code, r.out, r.err)
	}
	for _, w := range words {
		if !strings.Contains(r.out+r.err, w) {
			s.t.Errorf("%q: %q is missing from\n%s%s", args, w, r.out, r.err)
		}
	}
}

// process is a run under way.
type process struct {
	*exec.Cmd
	s        *site
	in       io.WriteCloser
	out, err *output
	exited   chan int // the status
}

// output is written by a process and read by the test.
type output struct{ file *os.File }

func (s *site) output() *output {
	s.t.Helper()
	f, err := os.Create(filepath.Join(s.t.TempDir(), "output"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = f.Close() })
	return &output{f}
}

func (o *output) String() string {
	text, _ := os.ReadFile(o.file.Name())
	return string(text)
}

// start begins a run. It is killed at the end of the test if it still runs.
func (s *site) start(args ...string) *process {
	s.t.Helper()
	p := &process{Cmd: s.command(args...), s: s, out: s.output(), err: s.output(), exited: make(chan int, 1)}
	p.Stdout, p.Stderr = p.out.file, p.err.file
	r, w, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	p.Stdin, p.in = r, w
	s.t.Cleanup(func() { _ = w.Close() })
	if err := p.Start(); err != nil {
		s.t.Fatal(err)
	}
	_ = r.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.Wait()
		p.exited <- p.ProcessState.ExitCode()
	}()
	s.t.Cleanup(func() {
		_ = p.Process.Kill() // it may have ended
		<-done
	})
	return p
}

// says waits until the process has printed certain words.
func (p *process) says(words string) {
	p.s.t.Helper()
	p.s.until(fmt.Sprintf("%q says %q", p.Args[1:], words), func() bool {
		return strings.Contains(p.out.String()+p.err.String(), words)
	})
}

// ends waits for the end of the process and checks its status.
func (p *process) ends(code int) {
	p.s.t.Helper()
	select {
	case got := <-p.exited:
		if got != code {
			p.s.t.Errorf("%q: status %d, want %d\n%s%s", p.Args[1:], got, code, p.out, p.err)
		}
	case <-time.After(patience):
		p.s.t.Fatalf("%q has not ended within %v\n%s%s", p.Args[1:], patience, p.out, p.err)
	}
}

// fromJSON parses what a command printed.
func fromJSON[T any](t *testing.T, r result) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(r.out), &v); err != nil {
		t.Fatalf("%v in\n%s%s", err, r.out, r.err)
	}
	return v
}
