// Package pinned makes commands that run on one core and do not outlive this process.
package pinned

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Command is exec.Command; if cpu is not negative, for a process that runs on that core alone.
func Command(cpu int, name string, args ...string) *exec.Cmd {
	if cpu >= 0 {
		args = append([]string{"-c", strconv.Itoa(cpu), name}, args...)
		name = "taskset" // becomes what it starts, so pid and signals are right
	}
	cmd := exec.Command(name, args...)
	dieWithParent(cmd)
	return cmd
}

// CPUs returns the numbers of the cores that this process may use.
func CPUs() []int {
	var cpus []int
	status, _ := os.ReadFile("/proc/self/status") // Linux only, as taskset is
	for line := range strings.Lines(string(status)) {
		list, found := strings.CutPrefix(line, "Cpus_allowed_list:")
		if !found {
			continue
		}
		for part := range strings.SplitSeq(strings.TrimSpace(list), ",") { // "0-3,8"
			first, last, isRange := strings.Cut(part, "-")
			from, err := strconv.Atoi(first)
			to := from
			if isRange {
				to, _ = strconv.Atoi(last)
			}
			for cpu := from; err == nil && cpu <= to; cpu++ {
				cpus = append(cpus, cpu)
			}
		}
	}
	return cpus
}
