package topology

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/integration/internal/child"
	"github.com/holdfast-go/holdfast/integration/internal/freeport"
	"github.com/holdfast-go/holdfast/integration/server"
)

const (
	answerDeadline = 15 * time.Second // start to first answer
	portDeadline   = 10 * time.Second // how long Restart fights for its old ports
)

var errPortHad = errors.New("a port was taken")

// binary finds the server to start nodes from, in the order of package server.
func binary() (string, error) {
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
	return "", fmt.Errorf("%w: replicas, Sentinel and Cluster need redis-server or valkey-server on PATH, or HOLDFAST_SERVER", server.ErrMissing)
}

// process is one node. Its settings are in a file, which sentinels need, and which failovers rewrite: a restarted
// node comes back in the role it had last.
type process struct {
	bin    string
	flags  []string // after the name of the file
	dir    string   // settings, working directory and log, removed by Stop
	port   int
	cmd    *exec.Cmd
	exited chan struct{} // closed by the goroutine of start that reaps cmd
}

// launch starts a node with the settings that conf makes for a port and the port of the cluster bus.
func launch(conf func(port, bus int) string, flags ...string) (*process, error) {
	bin, err := binary()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "holdfast-node-")
	if err != nil {
		return nil, err
	}
	p := &process{bin: bin, flags: flags, dir: dir}
	for range 5 {
		if err = p.configure(conf); err != nil {
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

func (p *process) configure(conf func(port, bus int) string) error {
	var err error
	if p.port, err = freeport.Pick(); err != nil {
		return err
	}
	// By default the bus is at port+10000, where the kernel takes the local ports of outgoing connections from.
	bus, err := freeport.Pick()
	if err != nil {
		return err
	}
	text := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\n%s", p.port, p.dir, conf(p.port, bus))
	return os.WriteFile(p.confName(), []byte(text), 0o600)
}

// start runs the binary and returns when it answers.
func (p *process) start() error {
	log, err := os.Create(p.logName())
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own descriptor
	cmd := child.Command(p.bin, append([]string{p.confName()}, p.flags...)...)
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
	if err := p.answers(); err != nil {
		_ = p.Kill()
		return p.explain(err)
	}
	return nil
}

// answers waits until this very process answers: another one may have won the race for the port.
func (p *process) answers() error {
	rdb := redis.NewClient(impatient(p.Addr()))
	defer func() { _ = rdb.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), answerDeadline)
	defer cancel()
	pid := "process_id:" + strconv.Itoa(p.cmd.Process.Pid)
	for {
		var info string
		conn, err := net.Dial("tcp", p.Addr()) // a pool of connections would rest after failures
		if err == nil {
			_ = conn.Close()
			info, err = rdb.Info(ctx, "server").Result()
		}
		switch {
		case err == nil && strings.Contains(info, pid+"\r\n"):
			return nil
		case err == nil:
			err = fmt.Errorf("another process answers than %s", pid)
		}
		select {
		case <-p.exited:
			return errors.New("it exited")
		case <-ctx.Done():
			return fmt.Errorf("not ready within %v: %w", answerDeadline, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// explain adds the node's own words to err, and tells a lost race for a port from a bad setting.
func (p *process) explain(err error) error {
	log, _ := os.ReadFile(p.logName())
	for _, words := range []string{"Address already in use", "Failed listening on port"} {
		if bytes.Contains(log, []byte(words)) {
			return fmt.Errorf("%w: %d or that of its bus", errPortHad, p.port)
		}
	}
	return fmt.Errorf("%s on port %d: %w; its log:\n%s", p.bin, p.port, err, log)
}

func (p *process) confName() string { return filepath.Join(p.dir, "node.conf") }
func (p *process) logName() string  { return filepath.Join(p.dir, "node.log") }

// Addr implements server.Instance.
func (p *process) Addr() string { return fmt.Sprintf("127.0.0.1:%d", p.port) }

// Pause implements server.Instance.
func (p *process) Pause() error { return child.Stop(p.cmd.Process) }

// Resume implements server.Instance.
func (p *process) Resume() error { return child.Cont(p.cmd.Process) }

// Kill implements server.Instance.
func (p *process) Kill() error {
	_ = child.Cont(p.cmd.Process) // a frozen process is continued first, so that it can end
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.exited
	return nil
}

// Restart implements server.Instance.
func (p *process) Restart() error {
	if err := p.Kill(); err != nil {
		return err
	}
	for end := time.Now().Add(portDeadline); ; time.Sleep(50 * time.Millisecond) {
		err := p.start()
		if !errors.Is(err, errPortHad) || time.Now().After(end) {
			return err
		}
	}
}

// Stop implements server.Instance.
func (p *process) Stop() error {
	var err error
	if p.cmd != nil && p.cmd.Process != nil {
		err = p.Kill()
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}
