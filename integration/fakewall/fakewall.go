// Package fakewall gives tests a server whose wall clock they can step: forwards and backwards, at once, as an operator
// or a bad time server would. Only the wall clock moves, as on a real machine; the monotonic one goes on.
//
//	clock := fakewall.Start(t)
//	client := clock.Client()
//	clock.Step(-time.Hour)
//
// A small library in C, preloaded, stands in for gettimeofday. Without gcc the test is skipped, or fails if CI=true.
package fakewall

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/server"
)

//go:embed testdata/fakewall.c
var source []byte

// Server is a server of the test's own with a clock that it can step.
type Server struct {
	*server.Server
	t      testing.TB
	file   string // the offset, read by the library whenever the server asks for the time
	offset time.Duration
}

// Start compiles the library and starts a server with it. Its clock is right at first.
func Start(t testing.TB, opts ...server.Option) *Server {
	t.Helper()
	bin, err := server.Binary()
	if err != nil {
		missing(t, err.Error())
	}
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		missing(t, "stepping a server's clock needs gcc on PATH")
	}
	dir := t.TempDir()
	s := &Server{t: t, file: filepath.Join(dir, "offset")}
	library, script := filepath.Join(dir, "fakewall.so"), filepath.Join(dir, "server")
	s.write(filepath.Join(dir, "fakewall.c"), string(source), 0o600)
	out, err := exec.Command(gcc, "-O2", "-shared", "-fPIC", "-o", library, filepath.Join(dir, "fakewall.c")).CombinedOutput()
	if err != nil {
		t.Fatalf("fakewall: gcc: %v: %s", err, out)
	}
	s.write(s.file, "0", 0o600)
	s.write(script, fmt.Sprintf("#!/bin/sh\nFAKEWALL='%s' LD_PRELOAD='%s' exec '%s' \"$@\"\n", s.file, library, bin), 0o700)
	s.Server = server.StartWith(t, server.Run(script), opts...)
	s.Step(time.Hour)
	s.requireStepped()
	s.Step(-time.Hour)
	return s
}

// Step moves the server's wall clock by d, which may be negative.
func (s *Server) Step(d time.Duration) {
	s.t.Helper()
	s.offset += d
	s.write(s.file+".new", strconv.FormatInt(s.offset.Microseconds(), 10), 0o600)
	if err := os.Rename(s.file+".new", s.file); err != nil { // at once: never half a number
		s.t.Fatal(err)
	}
}

// requireStepped makes sure that the library is in force: a statically linked server would ignore it.
func (s *Server) requireStepped() {
	s.t.Helper()
	now, err := s.Client().Time(s.t.Context()).Result()
	if err != nil {
		s.t.Fatal(err)
	}
	if off := time.Until(now) - s.offset; off.Abs() > time.Minute {
		s.t.Fatalf("fakewall: the server's clock is %v away from where it was put", off)
	}
}

func (s *Server) write(name, text string, mode os.FileMode) {
	s.t.Helper()
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		s.t.Fatal(err)
	}
}

// missing skips the test, or fails it in CI: see package server.
func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what)
	}
	t.Skip(what)
}
