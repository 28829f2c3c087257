package turnstile

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast/hold"
	"github.com/holdfast-go/holdfast/internal/tenure"
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
	if h.cfg.Observer == nil {
		held, _, err := h.obtain(ctx, r, try)
		return held, err
	}
	return h.observed(ctx, r, try)
}

// obtain waits for a hold, and tells how it came.
func (h *Hall) obtain(ctx context.Context, r *Request, try bool) (*hold.Hold, hold.How, error) {
	wait := ctx
	if r.Settings.Wait > 0 && !try {
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeoutCause(ctx, r.Settings.Wait, errWait)
		defer cancel()
	}
	if carried, ok := hold.Carried(ctx, h, r.Key); ok && r.Reentrant && !r.Settings.NonReentrant {
		held, err := h.reenter(wait, carried, r, try)
		return held, hold.Reentered, err
	}
	for {
		held, how, err := h.await(wait, r, try)
		if held != nil || err != nil {
			return held, how, err
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

// await blocks until it has a hold. Neither a hold nor an error: it was lost at once.
func (h *Hall) await(ctx context.Context, r *Request, try bool) (*hold.Hold, hold.How, error) {
	w := h.newWaiter(r, try)
	t := h.enter(r.Key)
	defer h.leave(t)
	switch {
	case !try && r.OneTicket && (t.candidate != nil || t.holder != nil || !t.local.empty()):
		t.local.push(&w.place, w)
		t.advance()
	default:
		o := t.start(w)
		if ctx.Done() == nil && r.Settings.Replicas == 0 && h.cfg.Caller.Alone() && t.departing(o) {
			t.attemptAlone(o) // unlocks meanwhile
		} else if r.Settings.Replicas > 0 {
			t.send(o)
		} else {
			t.dispatch(o)
			h.lookAfter(w)
		}
	}
	t.mu.Unlock()

	var err error
	var late <-chan time.Time
	if w.late != nil {
		late = w.late.C
	}
wait:
	select {
	case err = <-w.ready:
		if err == nil && h.isClosing() {
			t.abandon(w)
			err = tenure.ErrClosed
		}
	case <-ctx.Done():
		err = endOf(ctx)
		if hint := t.hint(w); hint != nil {
			err = fmt.Errorf("%w: %w", err, hint)
		}
		t.abandon(w)
	case <-h.open.Done():
		t.abandon(w)
		err = tenure.ErrClosed
	case <-late:
		h.leaveAlone(w)
		late = nil
		t.mu.Lock()
		t.schedule()
		t.mu.Unlock()
		goto wait
	}
	h.leaveAlone(w)
	o, share, how := w.owner, w.share, w.how // nobody else changes them any more
	h.forgetWaiter(w)
	if err != nil {
		return nil, 0, r.wrap(err)
	}
	held, err := o.take(share)
	if err != nil && try {
		return nil, 0, err
	}
	return held, how, nil
}

// attemptAlone makes the first attempt for o in the caller's goroutine, which gets an answer within the ReadTimeout. The
// turnstile is unlocked meanwhile.
func (t *turnstile) attemptAlone(o *owner) {
	a, sent := o.request(), o.waiter.polled
	t.mu.Unlock()
	answer, f := t.hall.cfg.Caller.Acquire(t.hall.ctx, a)
	t.mu.Lock()
	if o.answered(sent, answer, f) {
		t.pollAll(sent)
	}
}

// abandon ends a wait whose caller leaves. What it left at the server is undone in the background.
func (t *turnstile) abandon(w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch o := w.owner; {
	case w.share != nil: // it was given at the same moment: nobody has it yet
		share := w.share
		t.hall.crew.Go(func() { _ = o.release(share) })
	case o == nil:
		t.local.remove(&w.place)
	case o.phase == ended: // it failed at the same moment
	default:
		t.part(o)
	}
	w.drain()
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
	if known := t.known; o != nil && known != nil && !known.failedAt.IsZero() && known.failedAt.Since() < 2*t.hall.poll() {
		failure = known.failure
	}
	if failure == nil && o != nil && o.waiter != nil && o.inflight > 0 {
		if silent := o.waiter.silent.Since(); silent > silence {
			failure = fmt.Errorf("%w: no answer for %v", tenure.ErrUnavailable, silent.Round(time.Millisecond))
		}
	}
	holders := t.holders()
	if len(holders) == 0 || !w.req.Reentrant {
		return failure
	}
	how := "to re-enter, acquire with the context of that hold (Do's argument, or hold.Context)"
	if w.req.Settings.NonReentrant {
		how = "it is not reentrant here (NonReentrant)"
	}
	held := fmt.Errorf("this client has held it for %v: %s", holders[0].share.Since().Since().Round(time.Millisecond), how)
	if failure != nil {
		return fmt.Errorf("%w; %w", held, failure)
	}
	return held
}

// take makes the hold of what a waiter was given, and has the watchdog keep the tenure.
func (o *owner) take(share *tenure.Share) (*hold.Hold, error) {
	if err := share.Lost(); err != nil { // of a suspend it learns from its own first look
		return nil, err
	}
	h := hold.New(share)
	o.unguarded.Store(h)
	o.turn.mu.Lock()
	defer o.turn.mu.Unlock()
	dog := o.turn.hall.cfg.Watchdog
	switch {
	case o.watched || o.phase != holding:
	case o.claim > 0:
		dog.AddClaim(&o.watch, &o.tenure, o.claim)
	default:
		dog.Add(&o.watch, &o.tenure)
	}
	o.watched = true
	if o.hall().cfg.Stacks {
		stack := make([]uintptr, 32)
		stack = stack[:runtime.Callers(2, stack)]
		o.stack = &stack
	}
	return h, nil
}
