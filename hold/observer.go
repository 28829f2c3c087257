package hold

import (
	"context"
	"strconv"
	"time"
)

// Observer is told what a client does: for metrics, traces and tests. Every func may be nil. They are called in the goroutine
// that does the work, some with a lock held: they must return quickly, may be called at the same time, and must not
// use the client.
type Observer struct {
	// Acquiring is told when an acquisition begins. One of Acquired and NotAcquired follows.
	Acquiring func(ctx context.Context, l Lock)
	// Acquired is told when it has a hold.
	Acquired func(ctx context.Context, l Lock, a Acquisition)
	// NotAcquired is told when it ended without one, after what time, and why.
	NotAcquired func(ctx context.Context, l Lock, waited time.Duration, err error)
	// Released is told once for each hold, by its first Release; err is what that returned.
	Released func(ctx context.Context, l Lock, held time.Duration, err error)
	// Lost is told when a tenure was lost, with all its holds, how long after it began, and why. Each of the holds is still to
	// be released: Released then has an error that wraps ErrLost.
	Lost func(l Lock, held time.Duration, cause error)
	// Renewed is told when a lease was renewed, or why an attempt failed: it is tried again until the deadline.
	Renewed func(l Lock, err error)
	// Subscribed is told when the client's subscription stands, and when it is gone: waiting is by polling then.
	Subscribed func(up bool)
}

// Lock says which lock something happened to.
type Lock struct {
	Kind   string // "mutex", "fair", "rw" or "sem"
	Name   string
	Weight int64 // what is asked for: 1; of a read-write lock 1 to read; of a semaphore as many as were asked for
}

// Mode is "read" or "write" for a read-write lock, and empty for the others.
func (l Lock) Mode() string {
	switch {
	case l.Kind != "rw":
		return ""
	case l.Weight == 1:
		return "read"
	}
	return "write"
}

// Acquisition says how a hold was acquired.
type Acquisition struct {
	How    How
	Waited time.Duration
	Token  int64
}

// How tells how a hold was acquired.
type How int

// The ways to acquire a hold.
const (
	AtOnce    How = iota // the first request was answered with it
	Pushed               // it was waited for, and the server told
	Polled               // it was waited for, and a later request was answered with it
	Passed               // it was passed on by another goroutine of the same client, without Redis
	Reentered            // the context carried a hold of the name
)

// String returns a word for labels and logs.
func (h How) String() string {
	words := [...]string{"at once", "pushed", "polled", "passed", "reentered"}
	if h < 0 || int(h) >= len(words) {
		return "How(" + strconv.Itoa(int(h)) + ")"
	}
	return words[h]
}
