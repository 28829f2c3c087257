package turnstile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/hold"
	"github.com/holdfast-go/holdfast/internal/scripts"
	"github.com/holdfast-go/holdfast/internal/tenure"
)

// reenter adds a hold to the tenure of one that the caller's context carries. The server confirms it, and the
// depth shows there.
func (h *Hall) reenter(ctx context.Context, carried *hold.Hold, r *Request, try bool) (*hold.Hold, error) {
	o := carried.Keeper().(*owner)
	if _, weight := o.tenure.Level(); r.Weight > weight && weight > 0 {
		return nil, r.wrap(tenure.ErrUpgrade)
	}
	share, err := o.tenure.Join(r.Weight)
	if err != nil {
		return nil, err
	}
	confirmed := make(chan error, 1)
	quit, cancel := context.WithCancel(h.ctx)
	defer cancel()
	h.crew.Go(func() { confirmed <- o.confirm(quit, try) })
	select {
	case err = <-confirmed:
		if err == nil {
			return o.hold(share), nil
		}
	case <-ctx.Done():
		err = over(ctx)
	case <-h.closing:
		err = tenure.ErrClosed
	}
	cancel()
	h.crew.Go(func() { _ = o.Release(context.Background(), share) })
	if errors.Is(err, tenure.ErrLost) {
		return nil, err // names the lock already
	}
	return nil, r.wrap(err)
}

// confirm tells the server the new depth and makes sure that it still knows the tenure.
func (o *owner) confirm(ctx context.Context, once bool) error {
	t := o.tenure
	for pause := minBackoff; ; pause = min(2*pause, maxBackoff) {
		f := o.confirmOnce(ctx)
		switch {
		case t.Cause() != nil:
			return t.Cause()
		case f == nil:
			return nil
		case !f.Transient || once || ctx.Err() != nil:
			return f
		}
		select {
		case <-ctx.Done():
			return f
		case <-time.After(jitter(pause)):
		}
	}
}

func (o *owner) confirmOnce(ctx context.Context) *scripts.Failure {
	t := o.tenure
	t.DepthMu.Lock()
	defer t.DepthMu.Unlock()
	depth, _ := t.Level()
	if depth == 0 {
		return nil // the tenure has ended; its cause says why
	}
	a := o.acquire()
	a.Window = 0
	a.Depth = max(depth, 2) // never 1: a re-entry must not create
	if t.Terms.Fixed {
		a.Lease = hold.MinLease // the server never shortens: the fixed deadline stays
	}
	sent := tenure.Now()
	answer, f := o.hall.cfg.Caller.Acquire(ctx, a)
	switch {
	case f != nil:
		return f
	case answer.Status != scripts.Held || answer.Token != t.Token():
		t.End(fmt.Errorf("%w: the server no longer knows it", tenure.ErrLost))
	case !t.Terms.Fixed:
		t.Prolong(sent, t.Terms.Lease)
	}
	return nil
}
