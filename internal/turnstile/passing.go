package turnstile

import (
	"time"

	"github.com/holdfast-go/holdfast/hold"
	"github.com/holdfast-go/holdfast/internal/scripts"
	"github.com/holdfast-go/holdfast/internal/tenure"
)

// A client whose goroutines want the same mutex passes its tenure from one to the next without asking the server: lock
// cohorting (Dice, Marathe, Shavit, PPoPP 2012). It does so in turns, so that other clients wait at most for one turn and
// one hold of each client before them. Where nobody else waits, the next turn begins without a pause; in doubt a
// renewal asks towards the end of the turn.

const (
	minTurn = time.Millisecond
	maxTurn = 50 * time.Millisecond
	// turnTrips and turnHolds are how many round trips and how many holds of the usual length a turn lasts at least: a
	// hand-over costs a round trip, during which nobody works.
	turnTrips = 10
	turnHolds = 4
)

// passing is what an owner knows about the turn of its tenure.
type passing struct {
	began  tenure.Instant // the turn
	heard  tenure.Instant // when it was asked who else waits; others tells nothing about who came later
	others int32          // that wait at the server, as heard in this turn; unheard
	asked  bool           // in this turn
	asking bool           // the answer is on its way
}

const unheard = -1

func (p *passing) begin(now tenure.Instant) {
	*p = passing{began: now, others: unheard, asking: p.asking}
}

// told takes in what the grant said. That nobody waits will be old news at the end of the turn.
func (p *passing) told(others int) {
	if others > 0 {
		p.others = int32(others)
	}
}

// turn is how long a turn lasts.
func (t *turnstile) turn() time.Duration {
	trip := t.hall.cfg.Caller.RoundTrip()
	return min(max(turnTrips*trip, minTurn, turnHolds*t.usual+t.usual/2), maxTurn) // the half: not one hold more or less by chance
}

// lasted takes in how long a hold was. One that was long because its goroutine had to wait for a processor must not make the
// turns much longer, which would have others wait longer still: what a single one adds is bounded.
func (t *turnstile) lasted(d time.Duration) {
	switch excess := d - t.usual; {
	case t.usual == 0: // the first one
		t.usual = min(d, maxTurn/10)
	case excess < 0:
		t.usual += excess / 4
	default:
		t.usual += min(excess, max(t.usual, 50*time.Microsecond)) / 2
	}
}

// leave ends a share. With the last one of its session the tenure is passed on to the client's next waiter if its turn
// is not over; else what is left is the caller's to tell the server.
func (o *owner) leave(s *tenure.Share) (passed bool, depth int, err error) {
	t := o.turn
	if !o.req.OneTicket {
		depth, _, err = s.Leave()
		return false, depth, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var next *tenure.Share
	now := tenure.Lately()
	w := o.heir(now)
	began := o.share
	if w == nil {
		depth, _, err = s.Leave()
	} else if next, depth, _, err = s.Pass(o.ample()); next != nil {
		o.share = next
	}
	if err == nil && depth == 0 {
		t.lasted(now.Sub(began.Since()))
	}
	if next == nil {
		return false, depth, err
	}
	t.local.remove(&w.place)
	w.give(o, next, hold.Passed)
	return true, 0, nil
}

// ample is how much of a tenure must be left to pass it on: between renewals there always is.
func (o *owner) ample() time.Duration {
	lease := o.tenure.Terms.Lease
	if o.claim > 0 {
		lease = min(lease, o.claim)
	}
	return lease / 3
}

// heir is the waiter to whom o may pass its tenure; nil if there is none, or the turn is over.
func (o *owner) heir(now tenure.Instant) *waiter {
	t, p := o.turn, &o.passing
	if o.phase != holding || t.local.empty() || t.hall.isClosing() {
		return nil
	}
	w, terms := t.local.first.value, o.tenure.Terms
	if terms.Fixed || terms.MaxHold > 0 || w.req.Settings.Terms != *terms {
		return nil // it is to have its full lease
	}
	turn, taken := t.turn(), now.Sub(p.began)
	latest := turn + turn/2
	inTime := taken > turn*6/10 && taken < latest && p.others == unheard && !p.asked
	if inTime || tenure.RunsLow(o.share.Token()) && !p.asking {
		p.asked = true
		o.askOthers()
	}
	switch {
	case taken <= turn:
	case p.others == 0 && now.Sub(p.heard) <= turn:
		p.begin(now)
	case p.others == unheard && p.asked && taken < latest: // the answer is late: it is seldom worth a pause
	default:
		return nil
	}
	return w
}

// askOthers asks the server how many wait there, by a renewal, which is a proof for the next tokens, too.
func (o *owner) askOthers() {
	h, terms, began := o.hall(), o.tenure.Terms, o.passing.began
	o.passing.asking = true
	r := scripts.Renew{
		Key: o.req.Key, Owner: o.Identity(), Lease: terms.Lease, Token: o.tenure.Token(), Base: o.tenure.Base(), Weight: o.req.Weight, Depth: 1,
	}
	if terms.Replicas > 0 { // nothing is prolonged that is not acknowledged
		r.Lease = hold.MinLease
	}
	h.crew.add()
	h.cfg.Caller.GoRenew(h.ctx, &r, func(sent tenure.Instant, a scripts.Renewed, f *scripts.Failure) {
		defer h.crew.done()
		defer func() {
			o.turn.mu.Lock()
			o.passing.asking = false
			o.turn.mu.Unlock()
		}()
		switch {
		case f != nil:
		case !a.Held || a.Token != o.tenure.Token():
			o.tenure.End(errForgotten)
		default:
			lease := terms.Lease
			if terms.Replicas > 0 {
				lease = 0
			}
			o.tenure.Prolong(sent, lease, a.Now, tenure.Now())
			o.turn.mu.Lock()
			if o.phase == holding && o.passing.began == began {
				o.passing.others, o.passing.heard = int32(a.Waiting), sent
			}
			o.turn.mu.Unlock()
		}
	})
}
