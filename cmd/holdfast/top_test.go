//go:build unix

package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// terminal is a terminal of tmux, in which a shell runs the command.
type terminal struct {
	s      *site
	socket string
}

func (s *site) terminal() *terminal {
	s.t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("CI") == "true" {
			s.t.Fatal("tmux is not installed")
		}
		s.t.Skip("tmux is not installed")
	}
	dir, err := os.MkdirTemp("", "hf") // a socket's path must be short
	if err != nil {
		s.t.Fatal(err)
	}
	tm := &terminal{s, filepath.Join(dir, "tmux")}
	s.t.Cleanup(func() {
		_ = exec.Command("tmux", "-S", tm.socket, "kill-server").Run() // it ends by itself with its last session
		_ = os.RemoveAll(dir)
	})
	cmd := exec.Command("tmux", "-f", os.DevNull, "-S", tm.socket, "new-session", "-d", "-x", "110", "-y", "12", "sh")
	cmd.Env = append(os.Environ(), "REDIS_URL="+s.url, "HOLDFAST_PREFIX="+s.prefix, "PS1=$ ", "ENV=", "LC_ALL=C.UTF-8")
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("tmux: %v\n%s", err, out)
	}
	return tm
}

// types sends keys, named as tmux names them.
func (tm *terminal) types(keys ...string) {
	tm.s.t.Helper()
	args := append([]string{"-S", tm.socket, "send-keys", "-t", ":"}, keys...)
	if out, err := exec.Command("tmux", args...).CombinedOutput(); err != nil {
		tm.s.t.Fatalf("tmux: %v\n%s", err, out)
	}
}

func (tm *terminal) screen() string {
	out, _ := exec.Command("tmux", "-S", tm.socket, "capture-pane", "-p", "-t", ":").CombinedOutput() // seen until it fits
	return string(out)
}

// shows waits until all the words are on the screen, in this order.
func (tm *terminal) shows(words ...string) {
	tm.s.t.Helper()
	screen := ""
	defer func() {
		if tm.s.t.Failed() {
			tm.s.t.Logf("on the screen:\n%s", screen)
		}
	}()
	tm.s.until(fmt.Sprintf("the screen shows %q", words), func() bool {
		screen = tm.screen()
		rest := screen
		for _, w := range words {
			_, after, ok := strings.Cut(rest, w)
			if !ok {
				return false
			}
			rest = after
		}
		return true
	})
}

func TestTop(t *testing.T) {
	s := newSite(t)
	s.want(1, []string{"top"}, "needs a terminal")
	s.want(2, []string{"top", "--interval", "0s"}, "--interval")

	tm := s.terminal()
	a, b := s.client("web-1"), s.client("web-2")
	s.lock(a.Mutex("oldest"))
	s.lock(a.FairLock("busy"))
	s.wait(b, b.FairLock("busy"), fair("busy"))
	tm.types(bin+" top --interval 50ms", "Enter")
	tm.shows("2 held, 1 contended, 1 waiting, by waiters", "WAITING", "fair  busy", "web-1/", "mutex oldest", "web-1/", "s: sort by age", "q: quit")
	tm.types("s")
	tm.shows("by age", "mutex oldest", "fair  busy", "s: sort by waiters")

	released := s.lock(a.Mutex("fleeting")) // what happens shows up
	tm.shows("3 held", "fleeting")
	if err := released.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	tm.shows("2 held")
	for i := range 9 { // more than fit
		s.lock(a.Mutex(fmt.Sprint("many-", i)))
	}
	tm.shows("11 held", "3 more")
	tm.types("q")
	tm.shows("top --interval 50ms\n") // the screen is what it was
	tm.types("stty -a | grep -c -w -- -icanon; echo status $?", "Enter")
	tm.shows("0\n", "status 1") // the terminal, too

	tm.types("clear; "+bin+" top many-1; echo status $?", "Enter")
	tm.shows("1 held", "many-1", "mutex many-1")
	tm.types("C-c")
	tm.shows("status 0")
}

// With a terminal the command stays in the foreground: it can read, and Ctrl-C reaches it once.
func TestRunInATerminal(t *testing.T) {
	s := newSite(t)
	tm := s.terminal()
	tm.types(bin+` run x -- sh -c 'trap "echo interrupted" INT; read a; read a; echo got $a'; echo status $?`, "Enter")
	c := s.client("test")
	s.until("it holds", func() bool { return s.inspect(c, mutex("x")).Held() })
	tm.types("Enter", "ready", "Enter")
	tm.shows("got ready", "status 0")

	tm.types("clear; "+bin+` run x -- sh -c 'trap "echo interrupted; n=x\$n" INT; echo go; while [ "$n" = "" ]; do sleep 0.05; done; sleep 0.3; echo $n-end'; echo status $?`, "Enter")
	tm.shows("go\n")
	tm.types("C-c")
	tm.shows("interrupted\n", "x-end\n", "status 0")
}
