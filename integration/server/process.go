package server

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/integration/internal/child"
	"github.com/holdfast-go/holdfast/integration/internal/freeport"
)

const (
	readyDeadline   = 15 * time.Second // start to first answer; race builds on busy CI machines are slow
	restartDeadline = 10 * time.Second // how long Restart fights for its old port
)

var (
	errExited  = errors.New("the server exited")
	errPortHad = errors.New("the port was taken")
)

// process is a server run from a binary on this machine.
type process struct {
	bin    string
	args   []string
	dir    string // working directory and log, removed by Stop
	port   int
	cmd    *exec.Cmd
	exited chan struct{} // closed by the goroutine of start that reaps cmd
}

func processLauncher(bin string) Launcher {
	return func(args []string) (Instance, error) { return launchProcess(bin, args) }
}

func launchProcess(bin string, args []string) (Instance, error) {
	debug, err := debugArgs(bin)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "holdfast-server-")
	if err != nil {
		return nil, err
	}
	p := &process{bin: bin, args: append(debug, args...), dir: dir}
	for range 5 {
		if p.port, err = freeport.Pick(); err != nil {
			break
		}
		if err = p.start(); !errors.Is(err, errPortHad) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// start runs the binary on p.port and returns when it answers.
func (p *process) start() error {
	args := append([]string{
		"--port", strconv.Itoa(p.port),
		"--bind", "127.0.0.1",
		"--dir", p.dir,
		"--save", "",
		"--appendonly", "no",
	}, p.args...)
	log, err := os.Create(p.logName())
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own descriptor
	cmd := child.Command(p.bin, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	p.cmd, p.exited = cmd, exited
	go func() {
		_ = cmd.Wait() // killed is how they all end
		close(exited)
	}()
	if err := awaitReady(p.Addr(), cmd.Process.Pid, exited); err != nil {
		_ = p.Kill()
		return p.explain(err)
	}
	return nil
}

// explain adds the server's own words to err, and tells a lost race for the
// port, which is worth another try, from a bad argument, which is not.
func (p *process) explain(err error) error {
	log, _ := os.ReadFile(p.logName())
	if errors.Is(err, errExited) && bytes.Contains(log, []byte("Address already in use")) {
		return fmt.Errorf("%w: %d", errPortHad, p.port)
	}
	return fmt.Errorf("%s on port %d: %w; its log:\n%s", p.bin, p.port, err, log)
}

func (p *process) logName() string { return filepath.Join(p.dir, "server.log") }

// Addr implements Instance.
func (p *process) Addr() string { return fmt.Sprintf("127.0.0.1:%d", p.port) }

// Pause implements Instance.
func (p *process) Pause() error { return child.Stop(p.cmd.Process) }

// Resume implements Instance.
func (p *process) Resume() error { return child.Cont(p.cmd.Process) }

// Kill implements Instance.
func (p *process) Kill() error {
	_ = child.Cont(p.cmd.Process) // a frozen process is continued first, so that it can end
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.exited
	return nil
}

// Restart implements Instance.
func (p *process) Restart() error {
	if err := p.Kill(); err != nil {
		return err
	}
	for end := time.Now().Add(restartDeadline); ; time.Sleep(50 * time.Millisecond) {
		err := p.start()
		if !errors.Is(err, errPortHad) || time.Now().After(end) {
			return err
		}
	}
}

// Stop implements Instance.
func (p *process) Stop() error {
	var err error
	if p.cmd != nil && p.cmd.Process != nil {
		err = p.Kill()
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}
