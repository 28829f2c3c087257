package server

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// Process is a server run from a binary on this machine, in a directory of its own. It implements Instance: the
// directory outlives Kill and Restart, so that what the server saved there is found again.
type Process struct {
	bin    string
	args   []string
	dir    string // working directory and log, removed by Stop
	port   int
	cmd    *exec.Cmd
	exited chan struct{} // closed by the goroutine of start that reaps cmd
}

// Binary finds the server that HOLDFAST_SERVER names, else redis-server or valkey-server on PATH. Without one the
// error is ErrMissing, unless somebody asked for a certain one.
func Binary() (string, error) {
	if bin := os.Getenv("HOLDFAST_SERVER"); bin != "" {
		path, err := exec.LookPath(bin)
		if err != nil {
			return "", fmt.Errorf("HOLDFAST_SERVER: %w", err)
		}
		return path, nil
	}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: install redis-server or valkey-server, or set HOLDFAST_SERVER to the path of one", ErrMissing)
}

// Run returns a launcher for a binary, or for a script that ends by exec'ing one.
func Run(bin string) Launcher {
	return func(args []string) (Instance, error) {
		debug, err := debugArgs(bin)
		if err != nil {
			return nil, err
		}
		p, err := Launch(bin, func(dir string, port int) ([]string, error) {
			return slices.Concat([]string{
				"--port", strconv.Itoa(port),
				"--bind", "127.0.0.1",
				"--dir", dir,
				"--save", "",
				"--appendonly", "no",
			}, debug, args), nil
		})
		if err != nil {
			return nil, err
		}
		return p, nil
	}
}

// Launch runs a binary and returns it ready. The arguments are made for a directory and a port of its own, and made
// anew when the port, or another that they name, was lost to somebody; Restart uses them again.
func Launch(bin string, arguments func(dir string, port int) ([]string, error)) (*Process, error) {
	dir, err := os.MkdirTemp("", "holdfast-server-")
	if err != nil {
		return nil, err
	}
	p := &Process{bin: bin, dir: dir}
	for range 5 {
		if p.port, err = freeport.Pick(); err != nil {
			break
		}
		if p.args, err = arguments(dir, p.port); err != nil {
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

// start runs the binary and returns when it answers.
func (p *Process) start() error {
	log, err := os.Create(p.Log())
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own descriptor
	cmd := child.Command(p.bin, p.args...)
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
func (p *Process) explain(err error) error {
	log, _ := os.ReadFile(p.Log())
	for _, words := range []string{"Address already in use", "Failed listening on port"} {
		if errors.Is(err, errExited) && bytes.Contains(log, []byte(words)) {
			return fmt.Errorf("%w: %d or another of its own", errPortHad, p.port)
		}
	}
	return fmt.Errorf("%s on port %d: %w; its log:\n%s", p.bin, p.port, err, log)
}

// Dir is the server's directory.
func (p *Process) Dir() string { return p.dir }

// Log is the file with what the server has logged since its last start.
func (p *Process) Log() string { return filepath.Join(p.dir, "server.log") }

// Addr implements Instance.
func (p *Process) Addr() string { return fmt.Sprintf("127.0.0.1:%d", p.port) }

// Pause implements Instance.
func (p *Process) Pause() error { return child.Stop(p.cmd.Process) }

// Resume implements Instance.
func (p *Process) Resume() error { return child.Cont(p.cmd.Process) }

// Kill implements Instance.
func (p *Process) Kill() error {
	_ = child.Cont(p.cmd.Process) // a frozen process is continued first, so that it can end
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.exited
	return nil
}

// Restart implements Instance.
func (p *Process) Restart() error {
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
func (p *Process) Stop() error {
	var err error
	if p.cmd != nil && p.cmd.Process != nil {
		err = p.Kill()
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}
