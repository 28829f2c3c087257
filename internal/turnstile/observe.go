package turnstile

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/hold"
	"github.com/holdfast-go/holdfast/internal/tenure"
)

// What the hall tells an observer. Without one nothing is done for it.

func (r *Request) lock() hold.Lock { return hold.Lock{Kind: r.Kind, Name: r.Name, Weight: r.Weight} }

// observed is obtain for a hall with an observer.
func (h *Hall) observed(ctx context.Context, r *Request, try bool) (*hold.Hold, error) {
	see, began := h.cfg.Observer, time.Now()
	if see.Acquiring != nil {
		see.Acquiring(ctx, r.lock())
	}
	held, how, err := h.obtain(ctx, r, try)
	waited := time.Since(began)
	switch {
	case err != nil && see.NotAcquired != nil:
		see.NotAcquired(ctx, r.lock(), waited, err)
	case err == nil && see.Acquired != nil:
		see.Acquired(ctx, r.lock(), hold.Acquisition{How: how, Waited: waited, Token: held.Token()})
	}
	return held, err
}

// released tells of a release that was the user's, the first one of the hold; and of the loss, if it was the release that
// found it.
func (o *owner) released(ctx context.Context, s *tenure.Share, err error) {
	see := o.hall().cfg.Observer
	if see == nil || errors.Is(err, tenure.ErrReleased) || !s.Tell() {
		return
	}
	l, held := o.req.lock(), s.Since().Since()
	if found := errors.Is(err, tenure.ErrLost) && errors.Is(o.tenure.Cause(), tenure.ErrReleased); found && see.Lost != nil {
		see.Lost(l, held, err)
	}
	if see.Released != nil {
		l.Weight = s.Weight()
		see.Released(ctx, l, held, err)
	}
}

// Renewed is called by the watchdog with the outcome of a renewal.
func (h *Hall) Renewed(t *tenure.Tenure, err error) {
	t.Tenant().(*owner).guardLatest()
	if see := h.cfg.Observer; see != nil && see.Renewed != nil {
		see.Renewed(t.Tenant().(*owner).req.lock(), err)
	}
}

// Listening is called by the inbox when the subscription stands, and when it is gone.
func (h *Hall) Listening(up bool) {
	if see := h.cfg.Observer; see != nil && see.Subscribed != nil {
		see.Subscribed(up)
	}
}
