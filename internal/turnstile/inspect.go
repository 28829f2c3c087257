package turnstile

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/hold"
	"github.com/holdfast-go/holdfast/internal/scripts"
	"github.com/holdfast-go/holdfast/internal/tenure"
)

// clockStep is how far the clock of the tickets runs at most between two scripts, as in machine.lua.
const clockStep = 1500

// Inspect tells who holds a name and who waits for it. It takes nothing and writes nothing.
func (h *Hall) Inspect(ctx context.Context, r *Request) (hold.State, error) {
	if err := h.usable(ctx, r); err != nil {
		return hold.State{}, err
	}
	var now time.Time
	var fields map[string]string
	if err := h.ask(ctx, r, func() (f *scripts.Failure) {
		now, fields, f = h.cfg.Caller.Inspect(h.ctx, r.Key)
		return f
	}); err != nil {
		return hold.State{}, err
	}
	return state(r.Name, now.UnixMilli(), fields), nil
}

// ForceRelease frees a name at once, whoever holds it, and tells the holders. Waiters go on.
func (h *Hall) ForceRelease(ctx context.Context, r *Request) error {
	if err := h.usable(ctx, r); err != nil {
		return err
	}
	t := h.enter(r.Key)
	ours := t.holders() // they need no message; who is granted from now on stays
	t.mu.Unlock()
	defer h.leave(t)
	return h.ask(ctx, r, func() *scripts.Failure {
		release := scripts.Release{Key: r.Key, Owner: tenure.Owner{Client: h.cfg.Client}, Force: true} // 0 is nobody's number
		answer, f := h.cfg.Caller.Release(h.ctx, release)
		if f != nil {
			return f
		}
		for _, o := range ours {
			o.tenure.End(errForced)
		}
		for release.Force = false; f == nil && answer.More; { // only the grants go on: the new holders stay
			answer, f = h.cfg.Caller.Release(h.ctx, release)
		}
		return f
	})
}

// ask runs a call that its caller need not wait for to the end.
func (h *Hall) ask(ctx context.Context, r *Request, call func() *scripts.Failure) error {
	began := time.Now()
	done := make(chan *scripts.Failure, 1)
	h.crew.Go(func() { done <- call() })
	select {
	case f := <-done:
		if f != nil {
			return r.wrap(f)
		}
		return nil
	case <-h.ctx.Done():
		return r.wrap(tenure.ErrClosed)
	case <-ctx.Done():
		if silent := time.Since(began); silent > silence {
			return r.wrap(fmt.Errorf("%w: %w: no answer for %v", endOf(ctx), tenure.ErrUnavailable, silent.Round(time.Millisecond)))
		}
		return r.wrap(endOf(ctx))
	}
}

// usable says what keeps a call from being made at all.
func (h *Hall) usable(ctx context.Context, r *Request) error {
	err := r.check()
	switch {
	case err != nil:
	case h.isClosing():
		err = tenure.ErrClosed
	case ctx.Err() != nil:
		err = endOf(ctx)
	default:
		return nil
	}
	return r.wrap(err)
}

// state reads the fields of a name's hash as the scripts would at that moment.
func state(name string, now int64, fields map[string]string) hold.State {
	s := hold.State{Name: name, Token: tenure.FirstToken(integer(fields["seq"]))}
	vt := now
	if lt := integer(fields["lt"]); lt > 0 && integer(fields["q"]) > 0 {
		vt = integer(fields["vt"]) + min(max(now-lt, 0), clockStep)
	}
	type numbered struct {
		n int64
		w hold.Waiter
	}
	var queue []numbered
	for field, value := range fields {
		kind, owner, _ := strings.Cut(field, ":")
		v := integers(value)
		switch {
		case kind == "h" && len(v) >= 4 && deadline(value, v) > now:
			client, label := clientOf(owner)
			s.Holders = append(s.Holders, hold.Holder{
				Owner: owner, Client: client, Label: label, Weight: v[0], Depth: int(v[1]),
				LeaseLeft: time.Duration(deadline(value, v)-now) * time.Millisecond, Token: tenure.FirstToken(v[3]),
			})
		case kind == "t" && len(v) == 4:
			client, label := clientOf(owner)
			queue = append(queue, numbered{v[0], hold.Waiter{
				Owner: owner, Client: client, Label: label, Weight: v[1], Capacity: v[2],
				Alive: integer(fields["c:"+client]) > vt,
			}})
		}
	}
	for _, o := range s.Holders { // of an only holder it is not written apart
		s.Token = max(s.Token, o.Token)
	}
	slices.SortFunc(s.Holders, func(a, b hold.Holder) int { return cmp.Compare(a.Token, b.Token) })
	slices.SortFunc(queue, func(a, b numbered) int { return cmp.Compare(a.n, b.n) })
	for _, q := range queue {
		s.Queue = append(s.Queue, q.w)
	}
	return s
}

// deadline of a holder, in ms. It may be written as the lease, "+30000", which counts from the last renewal or else the token.
func deadline(value string, v []int64) int64 {
	if strings.Contains(value, "+") {
		return v[len(v)-1]/1000 + v[2]
	}
	return v[2]
}

// clientOf splits "<client id>:<n>", and the label "@…" that may end a client id.
func clientOf(owner string) (client, label string) {
	if i := strings.LastIndexByte(owner, ':'); i >= 0 {
		owner = owner[:i]
	}
	_, label, _ = strings.Cut(owner, "@")
	return owner, label
}

// integer parses a decimal; what is none counts as 0, as in the scripts.
func integer(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

func integers(s string) []int64 {
	var ns []int64
	for f := range strings.SplitSeq(s, " ") {
		ns = append(ns, integer(f))
	}
	return ns
}
