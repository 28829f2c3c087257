//go:build unix

package main_test

import (
	"os/exec"
	"strings"
	"testing"
)

func TestCompletion(t *testing.T) {
	s := newSite(t)
	for shell, words := range map[string]string{"bash": "__start_holdfast", "zsh": "#compdef holdfast", "fish": "complete -c holdfast"} {
		r := s.want(0, []string{"completion", shell}, words)
		if path, err := exec.LookPath(shell); err == nil {
			check := exec.Command(path, "-n")
			check.Stdin = strings.NewReader(r.out)
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%s does not understand it: %v\n%s", shell, err, out)
			}
		}
	}
	s.want(2, []string{"completion", "cmd.exe"}, "cmd.exe")
	s.want(2, []string{"completion"}, "See")

	c := s.client("holder")
	s.lock(c.Mutex("orders:1"))
	s.lock(c.Mutex("orders*"))
	s.lock(c.Mutex("users:1"))
	r := s.want(0, []string{"__complete", "inspect", "orders"}, "orders:1\n", "orders*\n")
	if strings.Contains(r.out, "users") {
		t.Errorf("completed:\n%s", r.out)
	}
	if r := s.want(0, []string{"__complete", "inspect", "orders*"}, "orders*\n"); strings.Contains(r.out, "orders:1") {
		t.Errorf("a star stands for itself there:\n%s", r.out)
	}
	s.want(0, []string{"__complete", "inspect", "--kind", ""}, "mutex\nfair\nrw\nsem\n")
	s.want(0, []string{"__complete", "d"}, "doctor")
}

func TestHelpTeaches(t *testing.T) {
	s := newSite(t)
	s.want(0, nil, "Usage:", "holdfast help connection")
	s.want(0, []string{"help", "connection"}, "redis+sentinel://host1:26379,host2:26379/mymaster", "redis+cluster://", "--tls-ca")
	s.want(0, []string{"help", "exit-status"}, "122", "123", "124")
	for _, command := range []string{"run", "ls", "inspect", "release", "top", "graph", "doctor", "completion", "version"} {
		s.want(0, []string{command, "--help"}, "Examples:", "holdfast "+command)
	}
	s.want(2, []string{"frobnicate"}, "unknown command", "See")

	s.want(0, []string{"version"}, "holdfast ", "go-redis v9", "go1.")
	v := fromJSON[struct{ Version, Go string }](t, s.want(0, []string{"version", "--json"}))
	if v.Version == "" || !strings.HasPrefix(v.Go, "go1") {
		t.Errorf("as JSON: %+v", v)
	}
}
