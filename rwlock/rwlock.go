// Package rwlock is the read-write lock of holdfast. Users get it from holdfast.Client.
package rwlock

import (
	"context"

	"github.com/holdfast-go/holdfast/hold"
	"github.com/holdfast-go/holdfast/internal/turnstile"
)

// capacity is what the name offers: a writer takes all of it, a reader one.
const capacity = 1 << 30

// RWLock is a reentrant lock for many readers or one writer, in the order in which their requests arrived at
// the server: consecutive readers enter together, a waiting writer is never overtaken by later readers, and one
// that gives up lets the readers behind it in at once. Every reader has a lease of its own: one that crashed
// delays a writer by its own lease at most.
//
// Re-entry is by context, as with Mutex: reading while reading, writing while writing, and reading while writing.
// Releasing the write hold over a nested read hold downgrades: other readers enter at once. Writing while
// reading is ErrUpgrade at once, for two readers that did it would wait for each other: release the read hold,
// take the write lock, and check again what was read.
type RWLock struct {
	hall        *turnstile.Hall
	read, write turnstile.Request
}

// New returns a read-write lock of a hall. Users call holdfast.Client.RWLock.
func New(hall *turnstile.Hall, name, key string, settings *hold.Settings, err error) *RWLock {
	read := turnstile.Request{
		Kind: "rw", Name: name, Key: key, Weight: 1, Capacity: capacity, Settings: settings, Err: err, Reentrant: true,
	}
	write := read
	write.Weight = capacity
	return &RWLock{hall: hall, read: read, write: write}
}

// Name returns the name.
func (l *RWLock) Name() string { return l.write.Name }

// Lock waits for the write lock, and keeps it until the returned hold is released or lost. ctx bounds the wait,
// not the hold. With the context of a read hold it fails with ErrUpgrade; other errors are those of Mutex.Lock.
func (l *RWLock) Lock(ctx context.Context) (*hold.Hold, error) {
	return l.hall.Acquire(ctx, &l.write)
}

// TryLock makes one attempt at the write lock: ErrNotAcquired when anybody else reads, writes or waits.
func (l *RWLock) TryLock(ctx context.Context) (*hold.Hold, error) {
	return l.hall.Try(ctx, &l.write)
}

// Do writes: it takes the write lock, runs f and releases, also when f panics. See Mutex.Do.
func (l *RWLock) Do(ctx context.Context, f func(ctx context.Context) error) error {
	return l.hall.Do(ctx, &l.write, f)
}

// RLock waits for a read lock, and keeps it until the returned hold is released or lost. ctx bounds the wait,
// not the hold. Errors are those of Mutex.Lock.
func (l *RWLock) RLock(ctx context.Context) (*hold.Hold, error) {
	return l.hall.Acquire(ctx, &l.read)
}

// TryRLock makes one attempt at a read lock: ErrNotAcquired when anybody else writes or waits.
func (l *RWLock) TryRLock(ctx context.Context) (*hold.Hold, error) {
	return l.hall.Try(ctx, &l.read)
}

// RDo reads: it takes a read lock, runs f and releases, also when f panics. See Mutex.Do.
func (l *RWLock) RDo(ctx context.Context, f func(ctx context.Context) error) error {
	return l.hall.Do(ctx, &l.read, f)
}

// Held returns the live hold of this name, of either kind, that ctx carries.
func (l *RWLock) Held(ctx context.Context) (*hold.Hold, bool) {
	return l.hall.Held(ctx, l.write.Key)
}

// Inspect tells who reads or writes (a writer has a Weight above 1) and who waits, in order, as the server sees
// it now. It takes nothing.
func (l *RWLock) Inspect(ctx context.Context) (hold.State, error) {
	return l.hall.Inspect(ctx, &l.write)
}

// ForceRelease frees the lock at once from all readers and writers. They are told (ErrLost) at once if their
// clients are subscribed, as they are once they have waited in a queue at the server, else by their next renewal, within
// a third of the lease. For emergencies.
func (l *RWLock) ForceRelease(ctx context.Context) error {
	return l.hall.ForceRelease(ctx, &l.write)
}
