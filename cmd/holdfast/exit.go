package main

import (
	"errors"
	"fmt"
)

// Exit statuses; the help topic "exit-status" explains them. Those of run stay clear of what commands use
// themselves, and follow timeout(1) and env(1).
const (
	exitFailed = 1
	exitUsage  = 2
	exitNo     = 3

	exitBusy          = 122
	exitLost          = 123
	exitTimeout       = 124
	exitRunFailed     = 125
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignal        = 128
)

// status is an error that carries its exit status.
type status struct {
	code int
	err  error // nil: nothing more is to be said
}

func (s *status) Error() string {
	if s.err == nil {
		return fmt.Sprintf("exit status %d", s.code)
	}
	return s.err.Error()
}

func (s *status) Unwrap() error { return s.err }

// failure returns an error with an exit status of its own.
func failure(code int, format string, args ...any) error {
	return &status{code, fmt.Errorf(format, args...)}
}

// silent returns an exit status for what was said already.
func silent(code int) error { return &status{code: code} }

// usage is a mistake on the command line.
func usage(format string, args ...any) error { return failure(exitUsage, format, args...) }

// codeOf returns the exit status of an error, by default that of a failure.
func codeOf(err error, failed int) int {
	if s, ok := errors.AsType[*status](err); ok {
		return s.code
	}
	return failed
}
