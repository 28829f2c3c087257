package turnstile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/scripts"
	"github.com/holdfast-go/holdfast/internal/tenure"
	"github.com/holdfast-go/holdfast/watchdog"
)

// Release implements hold.Keeper: it gives one share back, and with the last one the tenure.
func (o *owner) Release(_ context.Context, s *tenure.Share) error {
	depth, _, err := s.Leave()
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	if depth > 0 {
		o.hall.crew.Go(func() { done <- o.lower() })
	} else {
		o.hall.cfg.Watchdog.Remove(o.watching())
		o.hall.crew.Go(func() { done <- o.giveBack() })
	}
	limit := time.NewTimer(foreground)
	defer limit.Stop()
	select {
	case err = <-done:
	case <-limit.C:
		err = fmt.Errorf("%w: the release is not confirmed after %v and goes on in the background", tenure.ErrUnavailable, foreground)
	case <-o.hall.ctx.Done():
		err = tenure.ErrClosed
	}
	if err != nil {
		return o.req.wrap(err)
	}
	return nil
}

// Lose ends the tenure as if its lease had run out, for tests of code that must notice.
func (o *owner) Lose() {
	o.tenure.End(fmt.Errorf("%w: forced by a test", tenure.ErrLost))
}

// Extend implements hold.Keeper: it asks for a full lease from now on.
func (o *owner) Extend(ctx context.Context, t *tenure.Tenure) error {
	type result struct {
		a scripts.Renewed
		f *scripts.Failure
	}
	for pause := minBackoff; ; pause = min(2*pause, maxBackoff) {
		sent := tenure.Now()
		done := make(chan result, 1)
		o.hall.crew.Go(func() {
			as, fs := o.hall.cfg.Caller.RenewAll(o.hall.ctx, []scripts.Renew{{Key: o.turn.key, Owner: o.id, Lease: t.Terms.Lease, Token: t.Token()}})
			done <- result{as[0], fs[0]}
		})
		var f *scripts.Failure
		select {
		case r := <-done:
			f = r.f
			switch {
			case f != nil:
				t.Failed(f)
			case !r.a.Held || r.a.Token != t.Token():
				t.End(fmt.Errorf("%w: the server no longer knows it", tenure.ErrLost))
			default:
				t.Prolong(sent, t.Terms.Lease)
			}
		case <-time.After(scripts.Attempt):
		case <-ctx.Done():
			return o.req.wrap(errors.Join(over(ctx), tenure.ErrUnavailable))
		case <-o.hall.ctx.Done():
			return o.req.wrap(tenure.ErrClosed)
		}
		switch {
		case t.Cause() != nil:
			return t.Cause()
		case f == nil:
			return nil
		case !f.Transient:
			return o.req.wrap(f)
		}
		select {
		case <-ctx.Done():
			return o.req.wrap(errors.Join(over(ctx), f))
		case <-o.hall.ctx.Done():
			return o.req.wrap(tenure.ErrClosed)
		case <-time.After(jitter(pause)):
		}
	}
}

func (o *owner) watching() *watchdog.Watch {
	o.turn.mu.Lock()
	defer o.turn.mu.Unlock()
	return o.watch
}

// lower tells the server that a level of the tenure ended, and what weight is left: readers may enter beside
// a writer that reads on.
func (o *owner) lower() error {
	t := o.tenure
	ambiguous := false
	for pause := minBackoff; ; pause = min(2*pause, maxBackoff) {
		r, level, f := o.lowerOnce()
		switch {
		case level == 0:
			return nil // the tenure has ended since: that release tells all
		case f == nil && !r.Ended && !ambiguous:
			t.End(fmt.Errorf("%w: the server no longer knows it", tenure.ErrLost))
			return t.Cause()
		case f == nil:
			return nil
		case !f.Transient:
			return f
		}
		ambiguous = ambiguous || f.Unknown
		if t.Cause() != nil || !o.hall.sleep(jitter(pause)) {
			return f
		}
	}
}

func (o *owner) lowerOnce() (scripts.Released, int, *scripts.Failure) {
	t := o.tenure
	t.DepthMu.Lock()
	defer t.DepthMu.Unlock()
	depth, weight := t.Level()
	if depth == 0 {
		return scripts.Released{}, 0, nil
	}
	r, f := o.hall.cfg.Caller.Release(o.hall.ctx, scripts.Release{
		Key: o.turn.key, Owner: o.id, Depth: depth, Weight: weight, Token: t.Token(),
	})
	return r, depth, f
}

// giveBack releases a tenure whose last hold was released, and queues the client's next waiter in the same
// call. It goes on until Redis answers or the lease must have ended.
func (o *owner) giveBack() error {
	t := o.turn
	t.mu.Lock()
	o.end()
	var next *owner
	if t.candidate == nil && len(t.holders) == 0 {
		if w := t.nextLocal(); w != nil {
			next = t.start(w)
			next.inflight++ // the release is its request (c6)
			next.polled = tenure.Now()
			t.schedule()
		}
	}
	t.mu.Unlock()
	return o.retire(next)
}

// retire sends the release of an owner that has ended until it is answered or nothing of it can be left. next, if
// any, rides on the first attempt.
func (o *owner) retire(next *owner) error {
	t := o.turn
	defer o.hall.forget(o)
	var token int64
	deadline := tenure.Now()
	if o.tenure != nil {
		token, deadline = o.tenure.Token(), o.tenure.Deadline()
	}
	giveUp := time.Now().Add(max(o.req.Settings.Lease, o.hall.cfg.Claim) + time.Second)
	ambiguous := false // an earlier attempt may have run
	for pause := minBackoff; ; pause = min(2*pause, maxBackoff) {
		t.mu.Lock()
		release := scripts.Release{Key: t.key, Owner: o.id, Token: token, Tomb: o.tomb()}
		o.again = false
		t.mu.Unlock()
		if next != nil {
			a := next.acquire()
			release.Next = &a
		}
		sent := tenure.Now()
		r, f := o.hall.cfg.Caller.Release(o.hall.ctx, release)
		if next != nil {
			t.mu.Lock()
			next.requeued(sent, r, f)
			t.mu.Unlock()
			next = nil
		}
		if f == nil && r.More { // c12: the script left grants for another run
			ambiguous = ambiguous || r.Ended
			continue
		}
		if f == nil {
			switch {
			case o.needed():
				ambiguous = true
				continue
			case r.Ended, ambiguous && deadline.Until() > 0: // c8
				return nil
			}
			return fmt.Errorf("%w: the server no longer knew it", tenure.ErrLost)
		}
		ambiguous = ambiguous || f.Unknown
		if !f.Transient {
			return f
		}
		if time.Now().After(giveUp) || !o.hall.sleep(jitter(pause)) {
			return f
		}
	}
}

// needed reports whether an answer came for the ended owner after its release had been sent: it must be sent again.
func (o *owner) needed() bool {
	o.turn.mu.Lock()
	defer o.turn.mu.Unlock()
	if !o.again {
		o.undoing = false
	}
	return o.again
}

// requeued takes in what became of the ticket that a release was to take for o (c11).
func (o *owner) requeued(sent tenure.Instant, r scripts.Released, f *scripts.Failure) {
	o.arrived()
	t := o.turn
	switch {
	case f != nil && f.Unknown:
		o.unknown, o.missed = sent, true
	case f == nil && r.Ticket > 0:
		t.base.update(sent, r.Seq)
		if o.phase == ended {
			o.undo()
			return
		}
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
		t.send(o)
	}
}

// lost cleans up after a tenure that ended otherwise than by its release, and lets the next waiter go on.
func (o *owner) lost() {
	o.hall.cfg.Watchdog.Remove(o.watching())
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
	h := o.hall
	if h.undos.Add(1) > maxUndos {
		h.undos.Add(-1)
		h.log.warn("holdfast: too many undos at work, leases will end what is left behind", "name", o.turn.name)
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
		if err := o.retire(nil); err != nil && !errors.Is(err, tenure.ErrLost) {
			h.log.warn("holdfast: what an ended wait left behind could not be undone, its lease will end it", "name", o.turn.name, "error", err)
		}
	})
}
