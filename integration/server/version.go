package server

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
)

var (
	versionPattern = regexp.MustCompile(`(?i)\b(redis|valkey)\b.* v=(\d+)\.`)

	versions struct {
		mu     sync.Mutex // guards byPath
		byPath map[string][]string
	}
)

// debugArgs returns the arguments that allow DEBUG, for servers that ask for
// one: Redis since 7.0 and every Valkey. Older servers refuse to start with it.
func debugArgs(bin string) ([]string, error) {
	versions.mu.Lock()
	defer versions.mu.Unlock()
	if args, ok := versions.byPath[bin]; ok {
		return args, nil
	}
	out, err := exec.Command(bin, "--version").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s --version: %w: %s", bin, err, out)
	}
	m := versionPattern.FindStringSubmatch(string(out))
	if m == nil {
		return nil, fmt.Errorf("%s --version: neither Redis nor Valkey: %s", bin, out)
	}
	var args []string
	if major, err := strconv.Atoi(m[2]); err == nil && major >= 7 {
		args = []string{"--enable-debug-command", "yes"}
	}
	if versions.byPath == nil {
		versions.byPath = make(map[string][]string)
	}
	// Without spare capacity, since callers append to it.
	versions.byPath[bin] = args[:len(args):len(args)]
	return args, nil
}
