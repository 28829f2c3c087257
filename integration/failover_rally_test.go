package integration

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// rally is a ball game: players take one lock in turns until it is stopped.
type rally struct {
	players int
	stop    context.CancelFunc
	wg      sync.WaitGroup
	during  func(lock int, h *holdfast.Hold) // what a player of a lock does with a hold

	mu    sync.Mutex // guards seen, which the players write
	seen  []sighting
	fails []failing
}

// failing is a call that returned an error.
type failing struct {
	sighting
	err error
}

// rallyOf starts a rally: each lock is that of another client, and has as many players as told. They hold for a
// millisecond.
func rallyOf(each int, acquire ...func(context.Context) (*holdfast.Hold, error)) *rally {
	return rallyWith(func(int, *holdfast.Hold) { time.Sleep(time.Millisecond) }, each, acquire...)
}

// rallyWith is a rally of players who do something else with their holds.
func rallyWith(during func(int, *holdfast.Hold), each int, acquire ...func(context.Context) (*holdfast.Hold, error)) *rally {
	ctx, cancel := context.WithCancel(context.Background())
	r := &rally{players: each * len(acquire), stop: cancel, during: during}
	for p, a := range acquire {
		for g := range each {
			r.wg.Go(func() {
				for ctx.Err() == nil {
					r.turn(sighting{Process: p, Goroutine: g}, a)
				}
			})
		}
	}
	return r
}

// turn is one hold of a player.
func (r *rally) turn(s sighting, acquire func(context.Context) (*holdfast.Hold, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	s.Called = monotonic()
	h, err := acquire(ctx)
	if err == nil {
		s.Held, s.Token = monotonic(), h.Token()
		r.during(s.Process, h)
		s.Deadline = monotonic() + time.Until(h.Deadline()).Nanoseconds()
		s.Left = monotonic()
		if !h.Valid() {
			s.Deadline = min(s.Deadline, s.Left) // it knows
		}
		err = h.Release(context.Background())
		s.Freed = monotonic()
	}
	r.mu.Lock()
	if s.Held > 0 {
		r.seen = append(r.seen, s)
	}
	if err != nil {
		r.fails = append(r.fails, failing{s, err})
	}
	r.mu.Unlock()
	time.Sleep(time.Millisecond)
}

// over stops the rally and waits for the players.
func (r *rally) over() {
	r.stop()
	r.wg.Wait()
}

// holds returns how many there have been so far.
func (r *rally) holds() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen)
}

// mono is the instant in monotonic's time.
func mono(at time.Time) int64 { return monotonic() - time.Since(at).Nanoseconds() }

// recovery returns how long after the instant it was until every player had been given a hold.
func (r *rally) recovery(t *testing.T, after int64) (all time.Duration) {
	t.Helper()
	first := make(map[[2]int]int64)
	for _, s := range r.seen {
		id := [2]int{s.Process, s.Goroutine}
		if old, ok := first[id]; s.Held > after && (!ok || s.Held < old) {
			first[id] = s.Held
		}
	}
	if len(first) < r.players {
		t.Errorf("only %d of %d players ever held again", len(first), r.players)
	}
	for _, at := range first {
		all = max(all, time.Duration(at-after))
	}
	return all
}

// pause returns the longest time between two grants.
func (r *rally) pause() (longest time.Duration) {
	slices.SortFunc(r.seen, func(a, b sighting) int { return cmp.Compare(a.Held, b.Held) })
	for i := 1; i < len(r.seen); i++ {
		longest = max(longest, time.Duration(r.seen[i].Held-r.seen[i-1].Held))
	}
	return longest
}

// checkTokens makes sure that who asked after another one had been granted has the greater token.
func (r *rally) checkTokens(t *testing.T) {
	t.Helper()
	granted := slices.Clone(r.seen)
	slices.SortFunc(granted, func(a, b sighting) int { return cmp.Compare(a.Held, b.Held) })
	asked := slices.Clone(r.seen)
	slices.SortFunc(asked, func(a, b sighting) int { return cmp.Compare(a.Called, b.Called) })
	var top sighting
	for _, s := range asked {
		for len(granted) > 0 && granted[0].Held < s.Called {
			if granted[0].Token > top.Token {
				top = granted[0]
			}
			granted = granted[1:]
		}
		if s.Token <= top.Token {
			t.Fatalf("token %d was given to %+v after token %d to %+v", s.Token, s, top.Token, top)
		}
	}
}

// checkOverlaps makes sure that no two believed to hold at once, but for pairs that are excused.
func (r *rally) checkOverlaps(t *testing.T, excused func(earlier, later sighting) bool) (overlaps int) {
	t.Helper()
	slices.SortFunc(r.seen, func(a, b sighting) int { return cmp.Compare(a.Held, b.Held) })
	for i, a := range r.seen {
		for _, b := range r.seen[i+1:] {
			if b.Held >= min(a.Left, a.Deadline) {
				break
			}
			if !excused(a, b) {
				t.Fatalf("two believed to hold at once: %+v and %+v", a, b)
			}
			overlaps++
		}
	}
	return overlaps
}

// checkFails makes sure that only releases failed, with one of the errors, and only of holds that saw the time between
// the two instants.
func (r *rally) checkFails(t *testing.T, from, to int64, allowed ...error) {
	t.Helper()
	for _, f := range r.fails {
		switch {
		case f.Held == 0:
			t.Errorf("acquire failed: %+v: %v", f.sighting, f.err)
		case !slices.ContainsFunc(allowed, func(e error) bool { return errors.Is(f.err, e) }):
			t.Errorf("release failed: %+v: %v", f.sighting, f.err)
		case f.Freed < from || f.Held > to:
			t.Errorf("release failed %v before or %v after the trouble: %v", time.Duration(from-f.Freed), time.Duration(f.Held-to), f.err)
		}
	}
}
