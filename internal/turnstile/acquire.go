package turnstile

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast/hold"
	"github.com/holdfast-go/holdfast/internal/tenure"
	"github.com/holdfast-go/holdfast/watchdog"
)

// Acquire waits for a hold until ctx ends, the request's wait limit is over, or the hall closes.
func (h *Hall) Acquire(ctx context.Context, r *Request) (*hold.Hold, error) {
	return h.acquire(ctx, r, false)
}

// Try makes one attempt.
func (h *Hall) Try(ctx context.Context, r *Request) (*hold.Hold, error) {
	return h.acquire(ctx, r, true)
}

// Do runs f while holding, with a context that ends if the hold does. It returns f's error, joined with ErrLost
// if the hold was lost before f returned, and releases also when f panics.
func (h *Hall) Do(ctx context.Context, r *Request, f func(context.Context) error) (err error) {
	h.doing.add()
	defer h.doing.done()
	held, err := h.Acquire(ctx, r)
	if err != nil {
		return err
	}
	defer func() {
		released := held.Release(ctx)
		switch {
		case errors.Is(released, tenure.ErrUnavailable): // the work went through: its caller must not repeat it
			h.log.warn("holdfast: release not confirmed, it goes on in the background", "name", r.Name, "error", released)
		case released == nil, errors.Is(released, tenure.ErrReleased): // f may release by itself
		case errors.Is(released, tenure.ErrLost) && errors.Is(err, tenure.ErrLost),
			errors.Is(released, tenure.ErrClosed) && errors.Is(err, tenure.ErrClosed): // f says so
		default:
			err = errors.Join(err, released)
		}
	}()
	return f(held.Context(ctx))
}

// Held returns the live hold of the key that ctx carries.
func (h *Hall) Held(ctx context.Context, key string) (*hold.Hold, bool) {
	return hold.Carried(ctx, h, key)
}

func (h *Hall) acquire(ctx context.Context, r *Request, try bool) (*hold.Hold, error) {
	h.calls.add() // before the look at closing: Close waits for those who were let in
	defer h.calls.done()
	if err := h.usable(ctx, r); err != nil {
		return nil, err
	}
	wait := ctx
	if r.Settings.Wait > 0 && !try {
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeoutCause(ctx, r.Settings.Wait, errWait)
		defer cancel()
	}
	if carried, ok := hold.Carried(ctx, h, r.Key); ok && r.Reentrant && !r.Settings.NonReentrant {
		return h.reenter(wait, carried, r, try)
	}
	for {
		o, err := h.await(wait, r, try)
		if err != nil {
			return nil, r.wrap(err)
		}
		held, err := o.take()
		if err == nil || try {
			return held, err
		}
		// Lost before its caller ran: a process that was paused just then. It waits on.
	}
}

// errWait is the cause that ends a wait by its own limit.
var errWait = errors.New("wait limit reached")

// endOf says that a wait was ended by its context: the error matches ctx.Err() and context.Cause(ctx).
func endOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	switch {
	case errors.Is(cause, errWait):
		return fmt.Errorf("%w: %w", tenure.ErrNotAcquired, cause)
	case cause != nil && !errors.Is(cause, err):
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// await blocks until an owner holds.
func (h *Hall) await(ctx context.Context, r *Request, try bool) (*owner, error) {
	w := &waiter{req: r, ready: make(chan error, 1)}
	t := h.enter(r.Name, r.Key)
	defer h.leave(t)
	switch {
	case try:
		o := h.newOwner(t, w)
		o.try = true
		t.send(o)
	case r.OneTicket && (t.candidate != nil || len(t.holders) > 0 || t.local.Len() > 0):
		w.place = t.local.PushBack(w)
		t.advance()
	default:
		t.ask(w)
	}
	t.mu.Unlock()

	select {
	case err := <-w.ready:
		if err == nil && h.isClosing() {
			t.abandon(w)
			return nil, tenure.ErrClosed
		}
		return w.owner, err // not written any more once ready was sent to
	case <-ctx.Done():
		hint := t.hint(w)
		t.abandon(w)
		if hint != nil {
			return nil, fmt.Errorf("%w: %w", endOf(ctx), hint)
		}
		return nil, endOf(ctx)
	case <-h.open.Done():
		t.abandon(w)
		return nil, tenure.ErrClosed
	}
}

// abandon ends a wait whose caller leaves. What it left at the server is undone in the background.
func (t *turnstile) abandon(w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch o := w.owner; {
	case o == nil:
		if w.place != nil {
			t.local.Remove(w.place)
		}
	case o.phase == ended: // it failed at the same moment
	case o.phase == holding: // it was granted at the same moment: nobody has it yet
		o.end()
		o.undo()
	default:
		t.part(o)
	}
	t.advance()
}

// hint explains a wait that ends: this very client holds the name, which is how a forgotten context shows; or Redis
// was failing, or silent. Nil if there is nothing to say.
func (t *turnstile) hint(w *waiter) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var failure error
	o := w.owner
	if o == nil {
		o = t.candidate
	}
	if o != nil && time.Since(t.failedAt) < 2*t.hall.poll() {
		failure = t.failure
	}
	if failure == nil && o != nil && o.inflight > 0 && o.silent.Since() > silence {
		failure = fmt.Errorf("%w: no answer for %v", tenure.ErrUnavailable, o.silent.Since().Round(time.Millisecond))
	}
	if len(t.holders) == 0 || !w.req.Reentrant {
		return failure
	}
	held := fmt.Errorf("this client has held it for %v: to re-enter, acquire with the context of that hold (Do's argument, or hold.Context)",
		t.holders[0].tenure.Since().Since().Round(time.Millisecond))
	if failure != nil {
		return fmt.Errorf("%w; %w", held, failure)
	}
	return held
}

// take makes the first hold of what o was granted, and has the watchdog keep it.
func (o *owner) take() (*hold.Hold, error) {
	share, err := o.tenure.Join(o.req.Weight)
	if err != nil {
		return nil, err
	}
	h := o.hold(share)
	w := o.hall.cfg.Watchdog
	var watch *watchdog.Watch
	if o.claim > 0 {
		watch = w.AddClaim(o.tenure, o.turn.key, o.claim)
	} else {
		watch = w.Add(o.tenure, o.turn.key)
	}
	o.turn.mu.Lock()
	defer o.turn.mu.Unlock()
	o.watch = watch
	if o.phase == ended { // lost meanwhile
		w.Remove(watch)
	}
	if o.hall.cfg.Stacks {
		o.stack = make([]uintptr, 32)
		o.stack = o.stack[:runtime.Callers(2, o.stack)]
	}
	return h, nil
}

// hold makes a hold of a share. A Hold that is dropped without Release is renewed on and on: it gets a warning.
func (o *owner) hold(share *tenure.Share) *hold.Hold {
	h := hold.New(share, o, o.hall, o.turn.key)
	log := o.hall.log
	runtime.AddCleanup(h, func(s *tenure.Share) {
		if !s.Left() {
			log.warn("holdfast: a hold was dropped without Release and is still renewed", "name", s.Tenure().Name, "owner", s.Tenure().Owner)
		}
	}, share)
	return h
}
