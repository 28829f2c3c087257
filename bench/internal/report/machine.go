// Package report turns what was measured into Markdown, a chart and verdicts on the goals.
package report

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// Machine is where it was measured, and with what.
type Machine struct {
	Cores    int
	CPU      string
	Kernel   string
	Go       string
	Redis    string
	Versions []string // of modules
	Command  string
}

// modules are those whose versions matter.
var modules = []string{
	"github.com/redis/go-redis/v9", "github.com/go-redsync/redsync/v4", "github.com/bsm/redislock",
	"github.com/redis/rueidis", "golang.org/x/sync",
}

// ThisMachine describes the machine. arguments are the command's own.
func ThisMachine(redis string, arguments []string) Machine {
	m := Machine{
		Cores: runtime.NumCPU(), CPU: runtime.GOARCH, Kernel: runtime.GOOS, Go: runtime.Version(), Redis: redis,
		Command: strings.Join(append([]string{"go run ./bench"}, arguments...), " "),
	}
	if model := field("/proc/cpuinfo", "model name"); model != "" {
		m.CPU = model
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = "Linux " + strings.TrimSpace(string(release))
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return m
	}
	for _, dep := range info.Deps {
		if slices.Contains(modules, dep.Path) {
			m.Versions = append(m.Versions, dep.Path+" "+dep.Version)
		}
	}
	return m
}

// field returns the first value of a "name : value" line in a file, "" if there is none.
func field(file, name string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	for s := bufio.NewScanner(f); s.Scan(); {
		if key, value, _ := strings.Cut(s.Text(), ":"); strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (m *Machine) markdown() string {
	return fmt.Sprintf("Measured on %d cores (%s), %s, %s, redis-server %s on loopback without persistence;\n%s.\n\n    %s\n",
		m.Cores, m.CPU, m.Kernel, m.Go, m.Redis, strings.Join(m.Versions, ", "), m.Command)
}
