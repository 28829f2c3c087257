// Package child holds what test servers and worker processes share: freezing,
// thawing, and not outliving the test process.
package child

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// stopDeadline bounds how long Stop waits for the kernel to freeze a process.
const stopDeadline = 2 * time.Second

// Command is exec.Command for a process that dies with this one, where the
// system can arrange that.
func Command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	dieWithParent(cmd)
	return cmd
}

// Stop freezes p and returns once it no longer runs. The wait matters: kill(2)
// returns while p may still be answering on another CPU.
func Stop(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for end := time.Now().Add(stopDeadline); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if frozen(p.Pid) {
			return nil
		}
	}
	return fmt.Errorf("process %d still runs %v after SIGSTOP", p.Pid, stopDeadline)
}

// Cont lets a frozen p run again; it is harmless on one that runs.
func Cont(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
