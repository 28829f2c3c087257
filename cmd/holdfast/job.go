package main

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast"
)

// job is a command that runs under a hold.
type job struct {
	path      string
	argv      []string
	env       []string // on top of ours
	hold      *holdfast.Hold
	signals   <-chan os.Signal
	killAfter time.Duration
	say       func(format string, args ...any)
}

// run starts the command, passes signals on, ends the command if the hold is lost, and returns its exit status.
func (j *job) run() (int, error) {
	cmd := exec.Command(j.path)
	cmd.Args = j.argv
	cmd.Env = append(os.Environ(), j.env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	group := prepare(cmd)
	started, exited := make(chan error, 1), make(chan struct{})
	go func() {
		// Linux sends the signal of a parent's death when the thread that started the child ends: this one stays.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the state tells it all
			close(exited)
		}
	}()
	if err := <-started; err != nil {
		return 0, notExecutable(err)
	}
	for {
		select {
		case sig := <-j.signals:
			pass(cmd.Process, sig, group)
		case <-exited:
			return exitStatus(cmd.ProcessState), nil
		case <-j.hold.Done():
			j.end(cmd.Process, group, exited)
			return exitLost, nil
		}
	}
}

// end has the command end: nobody may work without the lock.
func (j *job) end(p *os.Process, group bool, exited <-chan struct{}) {
	j.say("%v: ending the command", j.hold.Err())
	terminate(p, group)
	deadline := time.Now().Add(j.killAfter)
	select {
	case <-exited:
	case <-time.After(j.killAfter):
		j.say("it has not ended after %v: killing it", j.killAfter)
		kill(p, group)
		<-exited
	}
	for group && groupAlive(p) { // what the command started has the same time
		if !time.Now().Before(deadline) {
			kill(p, group)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// notExecutable gives the errors of starting a command the statuses that shells use.
func notExecutable(err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return failure(exitNotFound, "%w", err)
	}
	return failure(exitNotExecutable, "%w", err)
}

// forwarded are the signals that the command gets, but for those that are ignored here: nohup means the command, too.
func forwarded() []os.Signal {
	var signals []os.Signal
	for _, sig := range signalsToPass {
		if !signal.Ignored(sig) {
			signals = append(signals, sig)
		}
	}
	return signals
}

// exitStatus is the exit status as shells tell it.
func exitStatus(s *os.ProcessState) int {
	if n, ok := signaled(s); ok {
		return exitSignal + n
	}
	return s.ExitCode()
}
