package child

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// dieWithParent covers the ends of a test process that run no cleanup: a panic
// in a goroutine, the -timeout alarm, SIGKILL.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// frozen reports whether every thread of the process is stopped, or gone: the
// kernel stops them one by one.
func frozen(pid int) bool {
	stats, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/stat")
	if err != nil {
		return true
	}
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		// "pid (name) state …": the name may hold anything, so look behind its last parenthesis.
		if i := bytes.LastIndexByte(stat, ')'); i >= 0 && i+2 < len(stat) {
			if state := stat[i+2]; state != 'T' && state != 'Z' && state != 'X' {
				return false
			}
		}
	}
	return true
}
