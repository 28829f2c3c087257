package server

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
)

// ErrMissing is returned by a Launcher when the machine has nothing to launch,
// as opposed to a launch that failed.
var ErrMissing = errors.New("no server to test against")

// Instance is one running server, however it is run.
type Instance interface {
	Addr() string
	Pause() error
	Resume() error
	Kill() error
	Restart() error
	Stop() error // ends it for good and removes what it left behind
}

// Launcher starts a server with extra arguments and returns it ready.
type Launcher func(args []string) (Instance, error)

var fallback struct {
	mu     sync.Mutex // guards launch
	launch Launcher
}

// RegisterFallback names the launcher for machines without a server binary.
// Package container calls it, so that only tests that import that package pay
// for compiling a Docker client.
func RegisterFallback(launch Launcher) {
	fallback.mu.Lock()
	defer fallback.mu.Unlock()
	fallback.launch = launch
}

// locate decides what servers are launched from.
func locate() (Launcher, error) {
	if bin := os.Getenv("HOLDFAST_SERVER"); bin != "" {
		path, err := exec.LookPath(bin)
		if err != nil {
			// Somebody asked for this very server: falling back would test another one.
			return func([]string) (Instance, error) { return nil, fmt.Errorf("HOLDFAST_SERVER: %w", err) }, nil
		}
		return processLauncher(path), nil
	}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return processLauncher(path), nil
		}
	}
	fallback.mu.Lock()
	defer fallback.mu.Unlock()
	if fallback.launch != nil {
		return fallback.launch, nil
	}
	return nil, fmt.Errorf("%w: install redis-server or valkey-server, or set HOLDFAST_SERVER to the path of one", ErrMissing)
}
