//go:build unix

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

func TestRunPassesTheStatusOn(t *testing.T) {
	s := newSite(t)
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("not executable"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		code int
		args string
		says string
	}{
		{0, "run x -- true", ""},
		{1, "run x -- false", ""},
		{127, "run x -- no-such-command", "not found"},
		{126, "run x -- " + script, "permission denied"},
		{125, "run x true", "--"},
		{125, "run x", "--"},
		{125, "run x y -- true", "one NAME"},
		{125, "run --fair --read x -- true", "fair"},
		{125, "run --wait 1s --no-wait x -- true", "wait"},
		{125, "run --wait -1s x -- true", "--wait"},
		{125, "run --semaphore 0 x -- true", "--semaphore"},
		{125, "run --lease 1ms x -- true", "Lease"},
		{125, "run --no-such-flag x -- true", "no-such-flag"},
		{125, "run --redis redis://127.0.0.1:1 --no-wait x -- true", "nothing listens there"},
		{125, "run --redis http://127.0.0.1 x -- true", "scheme"},
	} {
		s.want(test.code, strings.Fields(test.args), test.says)
	}
	for script, code := range map[string]int{"exit 2": 2, "exit 125": 125, "kill -9 $$": 137} {
		s.want(code, []string{"run", "x", "--", "sh", "-c", script})
	}
}

func TestRunHoldsTheLockAndTellsTheCommandItsToken(t *testing.T) {
	s := newSite(t)
	c := s.client("test")
	for flags, e := range map[string]holdfast.Entry{
		"":              mutex("job"),
		"--fair":        {Kind: "fair", Name: "job"},
		"--read":        {Kind: "rw", Name: "job"},
		"--write":       {Kind: "rw", Name: "job"},
		"--semaphore=2": {Kind: "sem", Name: "job"},
	} {
		args := append(strings.Fields("run "+flags), "job", "--", "sh", "-c", `echo "$HOLDFAST_NAME $HOLDFAST_TOKEN"; read line; echo "got $line"`)
		p := s.start(args...)
		p.says("job 1")
		state := s.inspect(c, e)
		if len(state.Holders) != 1 || p.out.String() != fmt.Sprintf("job %d\n", state.Holders[0].Token) {
			t.Errorf("%s: %+v while the command says %q", flags, state, p.out)
		} else if label := state.Holders[0].Label; !strings.HasSuffix(label, "-"+strconv.Itoa(p.Process.Pid)) {
			t.Errorf("%s: label %q, for process %d", flags, label, p.Process.Pid)
		}
		fmt.Fprintln(p.in, "it")
		p.ends(0)
		if s.inspect(c, e).Held() || !strings.Contains(p.out.String(), "got it") {
			t.Errorf("%s: afterwards %+v, output %q", flags, s.inspect(c, e), p.out)
		}
	}
}

func TestRunNoWait(t *testing.T) {
	s := newSite(t)
	c := s.client("test")
	s.lock(c.Mutex("x"))
	s.lock(c.FairLock("x"))
	if h, err := c.RWLock("x").RLock(t.Context()); err != nil {
		t.Fatal(err)
	} else {
		defer func() { _ = h.Release(t.Context()) }()
	}
	if h, err := c.Semaphore("x", 3).Acquire(t.Context(), 2); err != nil {
		t.Fatal(err)
	} else {
		defer func() { _ = h.Release(t.Context()) }()
	}
	for flags, code := range map[string]int{
		"--no-wait":                122,
		"--no-wait --fair":         122,
		"--no-wait --write":        122,
		"--no-wait --read":         0,
		"--no-wait --semaphore=2":  122,
		"--no-wait --semaphore=3":  0,
		"--wait 50ms":              124,
		"--wait 50ms --fair":       124,
		"--wait 50ms --semaphore2": 125,
	} {
		s.want(code, append(strings.Fields("run "+flags), "x", "--", "true"))
	}
}

func TestRunWaitsForItsTurn(t *testing.T) {
	s := newSite(t)
	c := s.client("holder")
	held := s.lock(c.Mutex("x"))
	p := s.start("run", "-v", "--wait", "1m", "x", "--", "echo", "mine")
	s.until("it is queued", func() bool { return len(s.inspect(c, mutex("x")).Queue) == 1 })
	p.says("is held by holder/")
	if p.out.String() != "" {
		t.Errorf("it ran beside the holder: %q", p.out)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.ends(0)
	if p.out.String() != "mine\n" {
		t.Errorf("output %q", p.out)
	}
}

func TestRunSaysThatItWaitsForRedis(t *testing.T) {
	s := newSite(t)
	p := s.start("run", "--redis", "127.0.0.1:1", "x", "--", "true")
	p.says("still waiting: ")
	p.says("nothing listens there")
	if err := p.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	p.ends(130)
	s.want(125, []string{"run", "--redis", "127.0.0.1:1", "--wait", "300ms", "x", "--", "true"}, "redis unavailable")
}

func TestRunPassesSignalsOn(t *testing.T) {
	s := newSite(t)
	for name, sig := range map[string]syscall.Signal{
		"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT,
		"TERM": syscall.SIGTERM, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
	} {
		p := s.start("run", name, "--", "sh", "-c", "trap 'echo got it; exit 9' "+name+"; echo ready; while :; do sleep 0.05; done")
		p.says("ready")
		if err := p.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		p.ends(9)
		if !strings.Contains(p.out.String(), "got it") {
			t.Errorf("%s: %q", name, p.out)
		}
	}
	// A command that does not trap it dies of it, with all that it started, and holdfast tells.
	p := s.start("run", "untrapped", "--", "sh", "-c", "sleep 60 & echo child $!; wait")
	p.says("child")
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.ends(143)
	s.gone(p.out.String())
}

// gone waits until the process is gone whose number stands behind the word child.
func (s *site) gone(out string) {
	s.t.Helper()
	var pid int
	if _, err := fmt.Sscanf(out[strings.Index(out, "child"):], "child %d", &pid); err != nil {
		s.t.Fatalf("no child in %q", out)
	}
	s.until("what the command started has ended", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return syscall.Kill(pid, 0) != nil
		}
		return strings.Contains(string(stat), ") Z ") // nobody reaps it here
	})
}

func TestSignalEndsTheWait(t *testing.T) {
	s := newSite(t)
	c := s.client("holder")
	s.lock(c.Mutex("x"))
	p := s.start("run", "x", "--", "echo", "never")
	s.until("it is queued", func() bool { return len(s.inspect(c, mutex("x")).Queue) == 1 })
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.ends(143)
	if queue := s.inspect(c, mutex("x")).Queue; len(queue) > 0 || p.out.String() != "" {
		t.Errorf("left behind: %+v; output %q", queue, p.out)
	}
}

func TestLostLockEndsTheCommand(t *testing.T) {
	s := newSite(t)
	c := s.client("admin")
	for name, lose := range map[string]func(name string) error{
		"forced":  func(name string) error { return c.Mutex(name).ForceRelease(t.Context()) },
		"deleted": func(name string) error { return s.rdb.Del(t.Context(), s.prefix+"mutex:"+name).Err() },
	} {
		p := s.start("run", "--lease", "1s", name, "--", "sh", "-c", "sleep 60 & echo child $!; wait")
		p.says("child")
		if err := lose(name); err != nil {
			t.Fatal(err)
		}
		p.ends(123)
		p.says("hold lost")
		s.gone(p.out.String())
	}
}

func TestCommandThatIgnoresTheLossIsKilled(t *testing.T) {
	s := newSite(t)
	for name, script := range map[string]string{
		"command": "trap '' TERM; echo child $$; while :; do sleep 0.05; done",
		// The command ends by itself, what it started does not.
		"grandchild": "sh -c 'trap \"\" TERM; echo child $$; while :; do sleep 0.05; done' & wait",
	} {
		p := s.start("run", "--lease", "1s", "--kill-after", "100ms", name, "--", "sh", "-c", script)
		p.says("child")
		if err := s.client("admin").Mutex(name).ForceRelease(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.ends(123)
		s.gone(p.out.String())
	}
}

func TestLossThatIsOnlyNoticedAtTheEnd(t *testing.T) {
	s := newSite(t)
	p := s.start("run", "x", "--", "sh", "-c", "echo ready; read line")
	p.says("ready")
	if err := s.client("admin").Mutex("x").ForceRelease(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = p.in.Close()
	p.ends(123)
	p.says("before the command ended")
}

func TestKilledHoldfastTakesTheCommandAlong(t *testing.T) {
	s := newSite(t)
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("only Linux tells a process of its parent's death")
	}
	p := s.start("run", "--lease", "1s", "x", "--", "sh", "-c", "echo child $$; while :; do sleep 0.05; done")
	p.says("child")
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.gone(p.out.String())
}

func TestRunIsRenewed(t *testing.T) {
	s := newSite(t)
	c := s.client("test")
	p := s.start("run", "--lease", "600ms", "x", "--", "sh", "-c", "echo ready; read line")
	p.says("ready")
	token := s.inspect(c, mutex("x")).Token
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if state := s.inspect(c, mutex("x")); !state.Held() || state.Token != token {
			t.Fatalf("not held throughout: %+v", state)
		}
	}
	_ = p.in.Close()
	p.ends(1) // of read at the end of its input
}
