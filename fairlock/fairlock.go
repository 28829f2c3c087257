// Package fairlock is the first-come-first-served lock of holdfast. Users get it from holdfast.Client.
package fairlock

import (
	"context"

	"github.com/holdfast-go/holdfast/hold"
	"github.com/holdfast-go/holdfast/internal/turnstile"
)

// FairLock is a reentrant mutual exclusion lock that serves its waiters strictly in the order in which their
// requests arrived at the server, over all goroutines of all processes. Nobody overtakes: TryLock fails while
// live waiters are queued. A waiter keeps its place through lost replies, a broken subscription and a reconnect; it
// loses it when Redis loses its data, or when its client is silent for longer than three seconds while
// others are not.
//
// Each hand-over goes through Redis. Where order does not matter, a Mutex is faster.
//
// Who excludes whom, and what ctx means, is as with Mutex: a context that comes from a hold re-enters.
type FairLock struct {
	hall    *turnstile.Hall
	request turnstile.Request
}

// New returns a fair lock of a hall. Users call holdfast.Client.FairLock.
func New(hall *turnstile.Hall, name, key string, settings *hold.Settings, err error) *FairLock {
	return &FairLock{hall: hall, request: turnstile.Request{
		Kind: "fair", Name: name, Key: key, Weight: 1, Capacity: 1, Settings: settings, Err: err, Reentrant: true,
	}}
}

// Name returns the name.
func (l *FairLock) Name() string { return l.request.Name }

// Lock queues, waits for its turn, and keeps the lock until the returned hold is released or lost. ctx bounds
// the wait, not the hold. A wait that ends leaves the queue at once; those behind it go on. Errors are those of
// Mutex.Lock.
func (l *FairLock) Lock(ctx context.Context) (*hold.Hold, error) {
	return l.hall.Acquire(ctx, &l.request)
}

// TryLock makes one attempt: ErrNotAcquired when the lock is held or live waiters are queued for it;
// ErrUnavailable when Redis gave no answer.
func (l *FairLock) TryLock(ctx context.Context) (*hold.Hold, error) {
	return l.hall.Try(ctx, &l.request)
}

// Do locks, runs f and releases, also when f panics. f's context ends if the lock is lost, with the cause
// ErrLost; locking the same name with it re-enters. It returns f's error, joined with ErrLost if the lock was
// lost before f returned.
func (l *FairLock) Do(ctx context.Context, f func(ctx context.Context) error) error {
	return l.hall.Do(ctx, &l.request, f)
}

// Held returns the live hold of this name that ctx carries.
func (l *FairLock) Held(ctx context.Context) (*hold.Hold, bool) {
	return l.hall.Held(ctx, l.request.Key)
}

// Inspect tells who holds the lock and who waits for it, in order, as the server sees it now. It takes nothing.
func (l *FairLock) Inspect(ctx context.Context) (hold.State, error) {
	return l.hall.Inspect(ctx, &l.request)
}

// ForceRelease frees the lock at once, whoever holds it, for the first in the queue. Its holder is told (ErrLost)
// at once if its client is subscribed, as it is once it has waited in a queue at the server, else by its next renewal,
// within a third of the lease. For emergencies.
func (l *FairLock) ForceRelease(ctx context.Context) error {
	return l.hall.ForceRelease(ctx, &l.request)
}
