package main

import "syscall"

// dieWithParent has the kernel end the command when holdfast is killed: nobody would renew the lease any more.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
