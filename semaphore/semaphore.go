// Package semaphore is the counting semaphore of holdfast. Users get it from holdfast.Client.
package semaphore

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/hold"
	"github.com/holdfast-go/holdfast/internal/tenure"
	"github.com/holdfast-go/holdfast/internal/turnstile"
)

// maxCapacity is what a semaphore can offer at most.
const maxCapacity = 1 << 30

// Semaphore is a name of which at most its capacity is held at a time. Waiters are served in the order in which
// their requests arrived at the server: the head of the queue waits until what it asks for is free, and nobody
// behind overtakes it, so that big requests do not starve.
//
// Holds are leased and renewed: what a crashed holder had comes back when its lease ends.
//
// The capacity is the caller's argument, not a stored setting. It travels with each request: two versions of a
// service with different capacities work side by side, each granted only while what is held by all leaves room
// within its own; a changed capacity counts from the next call on, and takes nothing from those who hold.
//
// A semaphore is not reentrant: a nested Acquire takes more, and can wait for itself.
type Semaphore struct {
	hall     *turnstile.Hall
	request  turnstile.Request // with a weight of 1
	capacity int
}

// New returns a semaphore of a hall. Users call holdfast.Client.Semaphore.
func New(hall *turnstile.Hall, name, key string, capacity int, settings *hold.Settings, err error) *Semaphore {
	if err == nil && (capacity < 1 || capacity > maxCapacity) {
		err = fmt.Errorf("%w: capacity of %d, 1 to %d are possible", tenure.ErrInvalid, capacity, maxCapacity)
	}
	return &Semaphore{hall: hall, capacity: capacity, request: turnstile.Request{
		Kind: "sem", Name: name, Key: key, Weight: 1, Capacity: int64(capacity), Settings: settings, Err: err,
	}}
}

// Name returns the name.
func (s *Semaphore) Name() string { return s.request.Name }

// Capacity returns the capacity that this value was made with.
func (s *Semaphore) Capacity() int { return s.capacity }

// Acquire waits until n, 1 to the capacity, is free, and keeps it until the returned hold is released or lost.
// ctx bounds the wait, not the hold. A wait that ends leaves the queue at once. Errors are those of Mutex.Lock.
func (s *Semaphore) Acquire(ctx context.Context, n int) (*hold.Hold, error) {
	return s.hall.Acquire(ctx, s.asking(n))
}

// TryAcquire makes one attempt: ErrNotAcquired when n is not free or live waiters are queued.
func (s *Semaphore) TryAcquire(ctx context.Context, n int) (*hold.Hold, error) {
	return s.hall.Try(ctx, s.asking(n))
}

// Do acquires n, runs f and releases, also when f panics. f's context ends if the hold is lost, with the cause
// ErrLost. It returns f's error, joined with ErrLost if the hold was lost before f returned.
func (s *Semaphore) Do(ctx context.Context, n int, f func(ctx context.Context) error) error {
	return s.hall.Do(ctx, s.asking(n), f)
}

// Held returns the live hold of this name that ctx carries: the innermost one.
func (s *Semaphore) Held(ctx context.Context) (*hold.Hold, bool) {
	return s.hall.Held(ctx, s.request.Key)
}

// Usage is what Inspect tells of a semaphore.
type Usage struct {
	hold.State
	InUse int // what all holders have together
	Free  int // what is left of this value's capacity, 0 when more is in use than it offers
}

// Inspect tells what is held, by whom, and who waits, in order, as the server sees it now. It takes nothing.
func (s *Semaphore) Inspect(ctx context.Context) (Usage, error) {
	state, err := s.hall.Inspect(ctx, &s.request)
	if err != nil {
		return Usage{}, err
	}
	u := Usage{State: state}
	for _, h := range state.Holders {
		u.InUse += int(h.Weight)
	}
	u.Free = max(s.capacity-u.InUse, 0)
	return u, nil
}

// ForceRelease takes everything back from all holders at once. They are told (ErrLost) at once if their clients
// are subscribed, as they are once they have waited in a queue at the server, else by their next renewal, within a third
// of the lease. For emergencies.
func (s *Semaphore) ForceRelease(ctx context.Context) error {
	return s.hall.ForceRelease(ctx, &s.request)
}

// asking is the request for n.
func (s *Semaphore) asking(n int) *turnstile.Request {
	if n == 1 {
		return &s.request
	}
	r := s.request
	r.Weight = int64(n)
	if r.Err == nil && (n < 1 || n > s.capacity) {
		r.Err = fmt.Errorf("%w: %d asked of a semaphore of %d", tenure.ErrInvalid, n, s.capacity)
	}
	return &r
}
