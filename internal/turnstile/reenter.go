package turnstile

import (
	"context"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/hold"
	"github.com/holdfast-go/holdfast/internal/scripts"
	"github.com/holdfast-go/holdfast/internal/tenure"
)

// reenter adds a hold to the tenure of one that the caller's context carries. The server confirms it, and the
// depth shows there.
func (h *Hall) reenter(ctx context.Context, carried *hold.Hold, r *Request, try bool) (*hold.Hold, error) {
	o := carried.Keeper().(*owner)
	share, err := carried.Share().Join(r.Weight)
	if err != nil {
		return nil, r.wrap(err)
	}
	err = o.insist(ctx, h.open, func() *scripts.Failure {
		f := o.confirm()
		if f != nil && try {
			f.Transient = false // one attempt
		}
		return f
	})
	if err == nil {
		held := hold.New(share)
		o.guard(held)
		return held, nil
	}
	h.crew.Go(func() { _ = o.release(share) })
	return nil, err
}

// confirm tells the server the depth and makes sure that it still knows the tenure. Depths may overtake each other on
// their way: whoever sees that the depth has changed since tells it again.
func (o *owner) confirm() *scripts.Failure {
	t := &o.tenure
	for {
		depth, _ := t.Level()
		if depth == 0 {
			return nil // the tenure has ended; its cause says why
		}
		a := o.acquire()
		a.Window, a.Acks = 0, scripts.Acks{}
		a.Depth = max(depth, 2) // never 1: a re-entry must not create
		if t.Terms.Fixed {
			a.Lease = hold.MinLease // the server never shortens: the fixed deadline stays
		}
		sent := tenure.Now()
		answer, f := o.hall().cfg.Caller.Acquire(o.hall().ctx, a)
		switch {
		case f != nil:
			return f
		case answer.Status != scripts.Held || answer.Token != t.Token():
			t.End(errForgotten)
			return nil
		case !t.Terms.Fixed && t.Terms.Replicas == 0: // what must be acknowledged is left to the renewals
			t.Prolong(sent, t.Terms.Lease, 0, tenure.Now())
		}
		switch now, _ := t.Level(); {
		case now == depth:
			return nil
		case now < 2: // left meanwhile: a release tells that, not a re-entry
			var ambiguous atomic.Bool
			ambiguous.Store(true)
			return o.lowerOnce(&ambiguous)
		}
	}
}
