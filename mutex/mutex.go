// Package mutex is the reentrant mutual exclusion lock of holdfast. Users get it from holdfast.Client.
package mutex

import (
	"context"

	"github.com/holdfast-go/holdfast/hold"
	"github.com/holdfast-go/holdfast/internal/turnstile"
)

// Mutex is a name that at most one owner holds at a time. It is immutable and may be shared freely; what is
// held is the Hold that an acquisition returns, not the Mutex.
//
// Two acquisitions exclude each other unless the second one's context comes from the first one's hold: Do's
// argument, or Hold.Context. Such a context is what a thread is to other reentrant locks: acquiring with it
// re-enters, at any depth and through any Mutex value of the same client and name. A plain second Lock waits
// like anybody else's.
//
// A Mutex is made for throughput: the goroutines of one client pass it among themselves without Redis, in turns of a few
// milliseconds (at most 50), after which other clients that wait have theirs. Every hold has its own token, context and
// loss all the same; Inspect shows the tenure that they share, with the token of its first. See FairLock for strict order.
type Mutex struct {
	hall    *turnstile.Hall
	request turnstile.Request
}

// New returns a mutex of a hall. Users call holdfast.Client.Mutex.
func New(hall *turnstile.Hall, name, key string, settings *hold.Settings, err error) *Mutex {
	return &Mutex{hall: hall, request: turnstile.Request{
		Kind: "mutex", Name: name, Key: key, Weight: 1, Capacity: 1, Settings: settings, Err: err, Reentrant: true, OneTicket: true,
	}}
}

// Name returns the name.
func (m *Mutex) Name() string { return m.request.Name }

// Lock waits until the mutex is held, and keeps it until the returned hold is released or lost. ctx bounds the
// wait, not the hold; the lease never bounds the wait.
//
// A wait that ends returns an error that matches ctx.Err() and context.Cause(ctx) (or ErrNotAcquired for the Wait
// option), and ErrUnavailable if Redis was failing then: transient trouble is retried until the wait ends. A
// missing right, a key of another type, a bad option or name (ErrInvalid) and a closed client (ErrClosed)
// fail at once. After an error nothing stays behind: what the attempt left in Redis is undone in the background.
func (m *Mutex) Lock(ctx context.Context) (*hold.Hold, error) {
	return m.hall.Acquire(ctx, &m.request)
}

// TryLock makes one attempt: ErrNotAcquired when the mutex is held, or live waiters are queued for it;
// ErrUnavailable when Redis gave no answer.
func (m *Mutex) TryLock(ctx context.Context) (*hold.Hold, error) {
	return m.hall.Try(ctx, &m.request)
}

// Do locks, runs f and releases, also when f panics. f's context ends if the lock is lost, with the cause
// ErrLost; locking the same name with it re-enters. Do returns f's error, joined with ErrLost if the lock was
// lost before f returned. A release that Redis does not confirm in time is no error: it goes on in the
// background.
func (m *Mutex) Do(ctx context.Context, f func(ctx context.Context) error) error {
	return m.hall.Do(ctx, &m.request, f)
}

// Held returns the live hold of this name that ctx carries: for its token, or to make sure of being inside.
func (m *Mutex) Held(ctx context.Context) (*hold.Hold, bool) {
	return m.hall.Held(ctx, m.request.Key)
}

// Inspect tells who holds the mutex and who waits for it, as the server sees it now. It takes nothing.
func (m *Mutex) Inspect(ctx context.Context) (hold.State, error) {
	return m.hall.Inspect(ctx, &m.request)
}

// ForceRelease frees the mutex at once, whoever holds it. Its holder is told (ErrLost) at once if its client is
// subscribed, as it is once it has waited in a queue at the server, not only behind its own goroutines. Else it learns by
// its next renewal, within a third of the lease: until then it may go on working. For emergencies.
func (m *Mutex) ForceRelease(ctx context.Context) error {
	return m.hall.ForceRelease(ctx, &m.request)
}
