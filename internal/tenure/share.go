package tenure

import (
	"sync/atomic"
	"time"
)

// Share is one hold's part of a tenure. It ends when it leaves or with the tenure. Safe for concurrent use.
type Share struct {
	tenure *Tenure
	weight int64
	token  int64
	since  Instant
	told   atomic.Bool

	// Guarded by the tenure's mutex.
	next  *Share // of the shares that last
	err   error
	watch *watch // made when first asked for
}

// watch is who is told when a share ends.
type watch struct {
	done   chan struct{} // nil until somebody asks
	funcs  map[int]func(error)
	nextID int
}

// watchLocked returns the share's, which is made if need be.
func (s *Share) watchLocked() *watch {
	if s.watch == nil {
		s.watch = new(watch)
	}
	return s.watch
}

// closedChan is what Done of a share that ended before anybody asked returns.
var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Tenure returns what s is a share of.
func (s *Share) Tenure() *Tenure { return s.tenure }

// Err returns nil while the share lasts, then why it ended.
func (s *Share) Err() error { return s.errAt(Now()) }

// Lost is Err, but may not see that the machine was suspended just now. It is cheaper.
func (s *Share) Lost() error { return s.errAt(Lately()) }

func (s *Share) errAt(now Instant) error {
	t := s.tenure
	t.mu.Lock()
	err, past := s.err, t.pastLocked(now)
	t.mu.Unlock()
	switch {
	case err != nil:
		return t.inLock(err)
	case past:
		t.End(nil)
		return s.errAt(now)
	}
	return nil
}

// Left reports whether the share has ended, without looking at the clock.
func (s *Share) Left() bool {
	s.tenure.mu.Lock()
	defer s.tenure.mu.Unlock()
	return s.err != nil
}

// Done returns a channel that is closed when the share ends.
func (s *Share) Done() <-chan struct{} {
	s.tenure.mu.Lock()
	defer s.tenure.mu.Unlock()
	if s.err != nil && (s.watch == nil || s.watch.done == nil) {
		return closedChan
	}
	w := s.watchLocked()
	if w.done == nil {
		w.done = make(chan struct{})
	}
	return w.done
}

// OnEnd calls f with the cause when the share ends, at once if it has ended; stop takes f back.
func (s *Share) OnEnd(f func(cause error)) (stop func()) {
	s.tenure.mu.Lock()
	if err := s.err; err != nil {
		s.tenure.mu.Unlock()
		f(s.tenure.inLock(err))
		return func() {}
	}
	w := s.watchLocked()
	if w.funcs == nil {
		w.funcs = make(map[int]func(error))
	}
	id := w.nextID
	w.nextID++
	w.funcs[id] = f
	s.tenure.mu.Unlock()
	return func() {
		s.tenure.mu.Lock()
		defer s.tenure.mu.Unlock()
		delete(w.funcs, id) // of none, once they are being called
	}
}

// Join adds a share beside s, of the same session. It fails with the cause once the tenure has ended, with s's if that
// ended and left nothing of its session behind, and with ErrUpgrade when no share has so much weight.
func (s *Share) Join(weight int64) (*Share, error) {
	t := s.tenure
	if !t.Alive() {
		return nil, t.Cause()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	depth, has := t.levelLocked()
	switch {
	case t.cause != nil:
		return nil, t.inLock(t.cause)
	case s.err != nil && (depth == 0 || t.first.token != s.token):
		return nil, t.inLock(s.err)
	case weight > has:
		return nil, ErrUpgrade
	}
	joined := new(Share)
	t.addLocked(joined, weight, s.token, Now())
	return joined, nil
}

// Token returns the fencing token.
func (s *Share) Token() int64 { return s.token }

// Weight returns what the share asked for.
func (s *Share) Weight() int64 { return s.weight }

// Tell reports whether an observer is yet to be told of the share's release; once.
func (s *Share) Tell() bool { return !s.told.Swap(true) }

// Since returns when the share began, as its client knows it.
func (s *Share) Since() Instant { return s.since }

// Leave ends the share as released, and tells what is left of the tenure. With nothing left the tenure has
// ended too, and its server side is the caller's to release. It fails with the reason if the share had
// ended before.
func (s *Share) Leave() (depth int, weight int64, err error) {
	_, depth, weight, err = s.leave(0)
	return depth, weight, err
}

// Pass is Leave, but where that would end the tenure a new session begins instead, with the share that is returned, if the
// tenure lasts for another need and has a token for it. Nil: as after Leave.
func (s *Share) Pass(need time.Duration) (next *Share, depth int, weight int64, err error) {
	return s.leave(need)
}

func (s *Share) leave(need time.Duration) (next *Share, depth int, weight int64, err error) {
	t := s.tenure
	now := Lately() // what ends is released, and the server says whether it lasted to the end
	if need > 0 {
		now = Now()
	}
	t.mu.Lock()
	if s.err != nil || t.pastLocked(now) { // a deadline that has passed unnoticed is a loss, not a release
		t.mu.Unlock()
		return nil, 0, 0, s.Err()
	}
	s.err = ErrReleased
	t.removeLocked(s)
	depth, weight = t.levelLocked()
	token, more := t.nextLocked()
	switch {
	case depth > 0:
	case need > 0 && t.deadline.Sub(now) >= need && more:
		t.last = token
		next = new(Share)
		t.addLocked(next, s.weight, token, now)
	default:
		t.cause = s.err
	}
	silent := s.watch == nil
	t.mu.Unlock()
	if !silent {
		s.announce()
	}
	return next, depth, weight, nil
}

func (t *Tenure) removeLocked(s *Share) {
	for at := &t.first; *at != nil; at = &(*at).next {
		if *at == s {
			*at, s.next = s.next, nil
			return
		}
	}
}

// announce closes Done and calls the watchers, once. The share's err is set, so neither changes any more.
func (s *Share) announce() {
	s.tenure.mu.Lock()
	w, err := s.watch, s.tenure.inLock(s.err)
	if w == nil {
		s.tenure.mu.Unlock()
		return
	}
	funcs := w.funcs
	w.funcs = nil
	s.tenure.mu.Unlock()
	if w.done != nil {
		close(w.done)
	}
	for _, f := range funcs {
		f(err)
	}
}
