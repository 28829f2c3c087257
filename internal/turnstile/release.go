package turnstile

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/scripts"
	"github.com/holdfast-go/holdfast/internal/tenure"
)

// Release implements hold.Keeper: it gives one share back, and with the last one the tenure, unless that passes on.
func (o *owner) Release(ctx context.Context, s *tenure.Share) error {
	o.hall().crew.add() // before the share has ended: Close waits for what it does not end itself
	defer o.hall().crew.done()
	err := o.release(s)
	o.released(ctx, s, err)
	return err
}

func (o *owner) release(s *tenure.Share) error {
	passed, depth, err := o.leave(s)
	switch {
	case err != nil:
		return err
	case passed:
		return nil
	case depth > 0:
		err = o.lower()
	default:
		o.unwatch()
		err = o.giveBack()
	}
	if err != nil {
		return o.req.wrap(err)
	}
	return nil
}

// errUnconfirmed says that a release was not answered while its caller waited.
var errUnconfirmed = fmt.Errorf("%w: the release is not confirmed after %v and goes on in the background", tenure.ErrUnavailable, foreground)

// Scope implements hold.Keeper.
func (o *owner) Scope() (client any, key string) { return o.hall(), o.req.Key }

// Lose ends the tenure as if its lease had run out, for tests of code that must notice.
func (o *owner) Lose() {
	o.tenure.End(fmt.Errorf("%w: forced by a test", tenure.ErrLost))
}

// Extend implements hold.Keeper: it asks for a full lease from now on.
func (o *owner) Extend(ctx context.Context, t *tenure.Tenure) error {
	return o.insist(ctx, o.hall().ctx, func() *scripts.Failure { return o.renew(t) })
}

func (o *owner) renew(t *tenure.Tenure) *scripts.Failure {
	renewal := scripts.RenewalOf(t)
	sent := tenure.Now()
	as, fs := o.hall().cfg.Caller.RenewAll(o.hall().ctx, []scripts.Renew{renewal})
	switch {
	case fs[0] != nil:
		t.Failed(fs[0])
		return fs[0]
	case !as[0].Held || as[0].Token != t.Token():
		t.End(errForgotten)
	default:
		t.Prolong(sent, t.Terms.Lease, as[0].Now, tenure.Now())
	}
	return nil
}

// errForgotten is how a hold ends that the server does not know any more.
var errForgotten = fmt.Errorf("%w: the server no longer knows it", tenure.ErrLost)

// insist makes attempts until one is answered, the tenure has ended, ctx ends, or the client is closed so far that open
// has ended.
func (o *owner) insist(ctx, open context.Context, attempt func() *scripts.Failure) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(open, func() { cancel(tenure.ErrClosed) })()
	began := time.Now()
	var last *scripts.Failure
	var err error
	if pursue(o.hall().crew, attempt).run(ctx, time.Time{}, func(f *scripts.Failure) step {
		if err = o.tenure.Cause(); err != nil || f == nil {
			return stop
		}
		last = f
		if !f.Transient {
			err = f
			return stop
		}
		return later
	}) {
		if err != nil {
			return o.req.wrap(err)
		}
		return nil
	}
	switch err := o.tenure.Cause(); {
	case err != nil:
		return err
	case open.Err() != nil:
		return o.req.wrap(tenure.ErrClosed)
	case last != nil:
		return o.req.wrap(fmt.Errorf("%w: %w", endOf(ctx), last))
	case time.Since(began) > silence:
		return o.req.wrap(fmt.Errorf("%w: %w", endOf(ctx), tenure.ErrUnavailable))
	}
	return o.req.wrap(endOf(ctx))
}

// lower tells the server that a level of the tenure ended, and what weight is left: readers may enter beside a
// writer that reads on. It is told for as long as its caller waits; then in the background until the lease must
// have ended.
func (o *owner) lower() error {
	ctx, cancel := context.WithTimeout(context.Background(), foreground)
	defer cancel()
	var ambiguous atomic.Bool
	tell := func() *scripts.Failure { return o.lowerOnce(&ambiguous) }
	err := o.insist(ctx, o.hall().ctx, tell)
	switch {
	case err == nil, errors.Is(err, tenure.ErrReleased): // a release since then tells all
		return nil
	case ctx.Err() == nil:
		return err
	}
	o.hall().crew.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), o.req.Settings.Lease)
		defer cancel()
		_ = o.insist(ctx, o.hall().ctx, tell)
	})
	return errUnconfirmed
}

func (o *owner) lowerOnce(ambiguous *atomic.Bool) *scripts.Failure {
	t := &o.tenure
	for {
		depth, weight := t.Level()
		if depth == 0 {
			return nil
		}
		r, f := o.hall().cfg.Caller.Release(o.hall().ctx, scripts.Release{
			Key: o.req.Key, Owner: o.Identity(), Depth: depth, Weight: weight, Token: t.Base(),
		})
		switch {
		case f != nil:
			if f.Unknown {
				ambiguous.Store(true)
			}
			return f
		case !r.Ended && !ambiguous.Load():
			t.End(errForgotten)
			return nil
		}
		if now, _ := t.Level(); now == depth {
			return nil
		}
	}
}

// giveBack releases a tenure whose last hold was released, and queues the client's next waiter in the same call.
func (o *owner) giveBack() error {
	t := o.turn
	t.mu.Lock()
	o.end()
	o.undoing = true // a late answer is for this retirement to undo, not for one beside it
	var next *owner
	if t.candidate == nil && t.holder == nil {
		if w := t.nextLocal(); w != nil {
			next = t.start(w)
			next.departed(tenure.Lately()) // the release is its request (c6)
			t.schedule()
		}
	}
	t.mu.Unlock()
	r := o.retire(next)
	if r.alone() {
		return r.err
	}
	if r.run(time.Now().Add(foreground)) {
		return r.err
	}
	o.hall().crew.Go(r.finish)
	return errUnconfirmed
}

// requeued takes in what became of the ticket that a release was to take for o (c11).
func (o *owner) requeued(sent tenure.Instant, r scripts.Released, f *scripts.Failure) {
	o.arrived()
	t := o.turn
	switch {
	case f != nil && f.Unknown:
		o.missed, o.known = true, true
		if sent.After(o.unknown) {
			o.unknown = sent
		}
	case f == nil && r.Ticket > 0:
		o.known = true
		if o.phase == ended {
			o.undo()
			return
		}
		o.numbered(r.Ticket, sent)
		t.lore().bases.add(sent, r.Seq)
		if o.phase == asking {
			o.queued(r.Ticket)
		}
		return
	}
	switch {
	case o.phase != asking:
	case f != nil:
		t.retryLater()
	default:
		t.sendOne(o)
	}
}

// lost cleans up after a tenure that ended otherwise than by its release, and lets the next waiter go on.
func (o *owner) lost() {
	o.unwatch()
	t := o.turn
	t.mu.Lock()
	if o.phase == ended {
		t.mu.Unlock()
		return
	}
	o.end()
	o.undo()
	t.advance()
	t.mu.Unlock()
}

// undo releases an ended owner in the background (c7). It first gives answers that are on their way a moment, so
// that tombstones remain for what is really lost.
func (o *owner) undo() {
	if o.undoing {
		o.again = true
		return
	}
	h := o.hall()
	if h.undos.Add(1) > maxUndos {
		h.undos.Add(-1)
		h.log.warn("holdfast: too many undos at work, leases will end what is left behind", "name", o.req.Name)
		h.crew.Go(func() { h.forget(o) })
		return
	}
	o.undoing = true
	var settled chan struct{}
	if o.inflight > 0 {
		settled = make(chan struct{})
		o.settled = settled
	}
	h.crew.Go(func() {
		defer h.undos.Add(-1)
		if settled != nil {
			select {
			case <-settled:
			case <-time.After(settle):
			case <-h.ctx.Done():
			}
		}
		o.retire(nil).finish()
	})
}
