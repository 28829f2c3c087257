package tenure

import (
	"errors"
	"fmt"
)

// The sentinels of the library; the root package re-exports them. They are told apart with errors.Is.
var (
	// ErrNotAcquired is returned when a name was held by others and the attempt or the wait limit ended.
	ErrNotAcquired = errors.New("not acquired")
	// ErrLost is returned when a hold ended without being released: its lease ran out, the server says
	// that it is gone, it was freed by force, or its MaxHold was reached.
	ErrLost = errors.New("hold lost")
	// ErrReleased is returned when a hold was released already.
	ErrReleased = errors.New("hold already released")
	// ErrClosed is returned when the client was closed.
	ErrClosed = errors.New("client closed")
	// ErrUpgrade is returned when a write lock is asked for under a read lock of the same context.
	ErrUpgrade = errors.New("a read lock cannot be upgraded: release it, take the write lock, check again")
	// ErrInvalid is returned when a name, an option, a weight or the key itself cannot be used.
	ErrInvalid = errors.New("invalid")
	// ErrUnavailable is returned when Redis could not be reached or could not serve.
	ErrUnavailable = errors.New("redis unavailable")
)

// Named is an error that says which lock it is about.
type Named struct {
	Name string
	Err  error
}

// InLock names the lock in an error, once; nil stays nil.
func InLock(name string, err error) error {
	if err == nil {
		return nil
	}
	if n, ok := errors.AsType[*Named](err); ok && n.Name == name {
		return err
	}
	return &Named{name, err}
}

// Error implements error.
func (n *Named) Error() string {
	name := n.Name
	if len(name) > 80 {
		name = name[:80] + "…"
	}
	return fmt.Sprintf("lock %q: %v", name, n.Err)
}

// Unwrap gives what went wrong.
func (n *Named) Unwrap() error { return n.Err }
