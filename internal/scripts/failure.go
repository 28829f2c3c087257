package scripts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/tenure"
)

// Failure is why a script call gave no answer.
type Failure struct {
	err error
	// Transient: worth trying again. The others (a missing right, a key of another type) are not.
	Transient bool
	// Unknown: the script may have run, or may still run.
	Unknown bool

	acks int // replicas that acknowledged, when those were too few
}

// Error implements error.
func (f *Failure) Error() string { return f.err.Error() }

// Unwrap gives the reply of Redis or the network's error, and a sentinel.
func (f *Failure) Unwrap() error { return f.err }

// transient are the error codes of a server that will serve again: it is starting, full, busy, failing over.
var transient = []string{
	"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "BUSY", "OOM", "MISCONF", "MOVED", "ASK",
	"NOSCRIPT", "ERR max number of clients reached", "ERR max client reached", "UNBLOCKED", "FAILOVER",
}

// NewFailure sorts an error of go-redis; nil gives nil.
func NewFailure(err error) *Failure {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	if reply, ok := errors.AsType[redis.Error](err); ok && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return refusal(err, reply.Error())
	}
	f := &Failure{Transient: true, Unknown: true, err: fmt.Errorf("%w: %w", tenure.ErrUnavailable, err)}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" || errors.Is(err, redis.ErrPoolTimeout) {
		f.Unknown = false // never left this process
	}
	if errors.Is(err, redis.ErrClosed) {
		f.Unknown, f.Transient = false, false
	}
	return f
}

// refusal sorts an error that Redis answered: the script did not run, or stopped before its first write.
func refusal(err error, text string) *Failure {
	for _, code := range transient {
		if strings.HasPrefix(text, code) || strings.Contains(text, "-"+code) {
			return &Failure{Transient: true, err: fmt.Errorf("%w: %w", tenure.ErrUnavailable, err)}
		}
	}
	switch {
	case strings.Contains(text, "WRONGTYPE"):
		err = fmt.Errorf("%w: the key holds something that is not holdfast's: %w", tenure.ErrInvalid, err)
	case strings.Contains(text, "HFVERSION"), strings.Contains(text, "HFARGS"):
		err = fmt.Errorf("%w: %w", tenure.ErrInvalid, err)
	case strings.HasPrefix(text, "NOPERM"), strings.Contains(text, "ACL failure in script"),
		strings.Contains(text, "can't run this command"), strings.Contains(text, "can't access at least one of the keys"):
		err = fmt.Errorf("%w: redis denies a command, key or channel that holdfast needs: %w", tenure.ErrUnavailable, err)
	}
	return &Failure{err: err}
}
