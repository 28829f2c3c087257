package server

import (
	"errors"
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
	bin, err := Binary()
	switch {
	case err == nil:
		return Run(bin), nil
	case !errors.Is(err, ErrMissing):
		// Somebody asked for this very server: falling back would test another one.
		return func([]string) (Instance, error) { return nil, err }, nil
	}
	fallback.mu.Lock()
	defer fallback.mu.Unlock()
	if fallback.launch != nil {
		return fallback.launch, nil
	}
	return nil, err
}
