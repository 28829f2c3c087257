package conformance

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast"
)

// locker is one way to acquire a name: what all primitives have in common.
type locker struct {
	Lock         func(ctx context.Context) (*holdfast.Hold, error)
	TryLock      func(ctx context.Context) (*holdfast.Hold, error)
	Do           func(ctx context.Context, f func(ctx context.Context) error) error
	Held         func(ctx context.Context) (*holdfast.Hold, bool)
	Inspect      func(ctx context.Context) (holdfast.State, error)
	ForceRelease func(ctx context.Context) error
}

// maker makes the locker of a client and a name.
type maker func(c *holdfast.Client, name string, options ...holdfast.LockOption) locker

// kind is a row of the table: a primitive, or one side of it.
type kind struct {
	name   string
	prefix string // of its keys, after the client's
	lock   maker
	rival  maker // takes the same name and conflicts with lock
	weight int64 // as Inspect shows it
	// exclusive: lock conflicts with itself.
	exclusive bool
	// reentrant: acquiring with the context of a hold re-enters.
	reentrant bool
	// ordered: waiters are served in the order of their arrival.
	ordered bool
}

var mutexKind = kind{
	name: "Mutex", prefix: "mutex", lock: lockMutex, rival: lockMutex, weight: 1, exclusive: true, reentrant: true,
}

var writeSide = kind{
	name: "RWLock write", prefix: "rw", lock: lockWrite, rival: lockWrite, weight: 1 << 30, exclusive: true, reentrant: true, ordered: true,
}

// kinds is the table.
var kinds = []kind{
	mutexKind,
	{
		name: "FairLock", prefix: "fair", lock: lockFair, rival: lockFair, weight: 1, exclusive: true, reentrant: true, ordered: true,
	},
	writeSide,
	{
		name: "RWLock read", prefix: "rw", lock: lockRead, rival: lockWrite, weight: 1, reentrant: true, ordered: true,
	},
	semaphoreOf(1, 1),
	semaphoreOf(3, 3),
}

func lockMutex(c *holdfast.Client, name string, options ...holdfast.LockOption) locker {
	m := c.Mutex(name, options...)
	return locker{m.Lock, m.TryLock, m.Do, m.Held, m.Inspect, m.ForceRelease}
}

func lockFair(c *holdfast.Client, name string, options ...holdfast.LockOption) locker {
	l := c.FairLock(name, options...)
	return locker{l.Lock, l.TryLock, l.Do, l.Held, l.Inspect, l.ForceRelease}
}

func lockWrite(c *holdfast.Client, name string, options ...holdfast.LockOption) locker {
	l := c.RWLock(name, options...)
	return locker{l.Lock, l.TryLock, l.Do, l.Held, l.Inspect, l.ForceRelease}
}

func lockRead(c *holdfast.Client, name string, options ...holdfast.LockOption) locker {
	l := c.RWLock(name, options...)
	return locker{l.RLock, l.TryRLock, l.RDo, l.Held, l.Inspect, l.ForceRelease}
}

// semaphoreOf is the kind that takes n of a semaphore's capacity.
func semaphoreOf(n, capacity int) kind {
	lock := takeOf(n, capacity)
	return kind{
		name: fmt.Sprintf("Semaphore %d of %d", n, capacity), prefix: "sem", lock: lock, rival: lock, weight: int64(n),
		exclusive: 2*n > capacity, ordered: true,
	}
}

func takeOf(n, capacity int) maker {
	return func(c *holdfast.Client, name string, options ...holdfast.LockOption) locker {
		s := c.Semaphore(name, capacity, options...)
		return locker{
			Lock:    func(ctx context.Context) (*holdfast.Hold, error) { return s.Acquire(ctx, n) },
			TryLock: func(ctx context.Context) (*holdfast.Hold, error) { return s.TryAcquire(ctx, n) },
			Do:      func(ctx context.Context, f func(context.Context) error) error { return s.Do(ctx, n, f) },
			Held:    s.Held,
			Inspect: func(ctx context.Context) (holdfast.State, error) {
				usage, err := s.Inspect(ctx)
				return usage.State, err
			},
			ForceRelease: s.ForceRelease,
		}
	}
}
