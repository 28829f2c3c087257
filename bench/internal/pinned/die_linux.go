package pinned

import (
	"os/exec"
	"syscall"
)

// dieWithParent covers the ends of this process that run no cleanup.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
