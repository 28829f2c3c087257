package worker

import (
	"fmt"
	"os"
	"slices"
)

// env names the worker that a process is to be.
const env = "HOLDFAST_WORKER"

// Written by init functions and TestMain only, before any test runs.
var (
	registry = make(map[string]func(args []string) error)
	ready    bool // Main has returned, so this is the parent and workers will find Main
)

// Register makes fn available to Spawn; call it from an init function. What fn
// prints to standard output the parent reads line by line. An error from fn is
// printed to standard error and ends the worker with exit code 1.
func Register(name string, fn func(args []string) error) {
	if _, taken := registry[name]; taken {
		panic("worker: registered twice: " + name)
	}
	registry[name] = fn
}

// Main turns a process started by Spawn into its worker, and never returns
// there. Elsewhere it does nothing. It must come first in TestMain.
func Main() {
	name, isWorker := os.LookupEnv(env)
	if !isWorker {
		ready = true
		return
	}
	fn, ok := registry[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "worker: no %q registered\n", name)
		os.Exit(2)
	}
	// A worker that spawned something would not want it to be a worker, too.
	_ = os.Unsetenv(env)
	if err := fn(slices.Clone(os.Args[1:])); err != nil {
		fmt.Fprintf(os.Stderr, "worker %s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}
