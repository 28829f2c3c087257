//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

var signalsToPass = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
}

// prepare decides how the command stands to us. Without a terminal it leads a process group of its own, so that
// what it starts gets signals, too, and can be ended. With one it stays in ours, for only then can it read from
// the terminal, and can the shell stop and resume us together.
func prepare(cmd *exec.Cmd) (group bool) {
	tty, err := os.Open("/dev/tty")
	if err == nil {
		_ = tty.Close()
	}
	group = err != nil
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: group}
	dieWithParent(cmd.SysProcAttr)
	return group
}

// pass sends a signal on to the command. One that the terminal sends has reached a command in our group already.
func pass(p *os.Process, sig os.Signal, group bool) {
	if !group && (sig == syscall.SIGINT || sig == syscall.SIGQUIT) && inForeground() {
		return
	}
	send(p, sig.(syscall.Signal), group)
}

// inForeground reports whether the terminal's keys send their signals to our process group.
func inForeground() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer func() { _ = tty.Close() }()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// terminate also has a stopped command go on, or it could not end.
func terminate(p *os.Process, group bool) {
	send(p, syscall.SIGTERM, group)
	send(p, syscall.SIGCONT, group)
}

func kill(p *os.Process, group bool) { send(p, syscall.SIGKILL, group) }

// send ignores errors: a command that has ended needs no signal.
func send(p *os.Process, sig syscall.Signal, group bool) {
	if group {
		_ = syscall.Kill(-p.Pid, sig)
		return
	}
	_ = p.Signal(sig)
}

// groupAlive reports whether anything is left of the command's process group. While there is, its number is not given
// to anybody else.
func groupAlive(p *os.Process) bool {
	return !errors.Is(syscall.Kill(-p.Pid, 0), syscall.ESRCH)
}

func signaled(s *os.ProcessState) (int, bool) {
	w, ok := s.Sys().(syscall.WaitStatus)
	return int(w.Signal()), ok && w.Signaled()
}
