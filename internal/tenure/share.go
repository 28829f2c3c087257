package tenure

import "slices"

// Share is one hold's part of a tenure. It ends when it leaves or with the tenure. Safe for concurrent use.
type Share struct {
	tenure *Tenure
	weight int64

	// Guarded by the tenure's mutex.
	err      error
	done     chan struct{} // made when first asked for
	watchers map[int]func(error)
	nextID   int
}

// closedChan is what Done of a share that ended before anybody asked returns.
var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Tenure returns what s is a share of.
func (s *Share) Tenure() *Tenure { return s.tenure }

// Err returns nil while the share lasts, then why it ended.
func (s *Share) Err() error {
	s.tenure.Alive()
	s.tenure.mu.Lock()
	defer s.tenure.mu.Unlock()
	return s.err
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
	if s.done == nil {
		if s.err != nil {
			return closedChan
		}
		s.done = make(chan struct{})
	}
	return s.done
}

// OnEnd calls f with the cause when the share ends, at once if it has ended; stop takes f back.
func (s *Share) OnEnd(f func(cause error)) (stop func()) {
	s.tenure.mu.Lock()
	if err := s.err; err != nil {
		s.tenure.mu.Unlock()
		f(err)
		return func() {}
	}
	if s.watchers == nil {
		s.watchers = make(map[int]func(error))
	}
	id := s.nextID
	s.nextID++
	s.watchers[id] = f
	s.tenure.mu.Unlock()
	return func() {
		s.tenure.mu.Lock()
		defer s.tenure.mu.Unlock()
		delete(s.watchers, id)
	}
}

// Leave ends the share as released, and tells what is left of the tenure. With nothing left the tenure has
// ended too, and its server side is the caller's to release. It fails with the reason if the share had
// ended before.
func (s *Share) Leave() (depth int, weight int64, err error) {
	t := s.tenure
	t.Alive() // a deadline that has passed unnoticed is a loss, not a release
	t.mu.Lock()
	if s.err != nil {
		t.mu.Unlock()
		return 0, 0, s.err
	}
	s.err = InLock(t.Name, ErrReleased)
	t.shares = slices.DeleteFunc(t.shares, func(o *Share) bool { return o == s })
	depth, weight = t.levelLocked()
	if depth == 0 {
		t.cause = s.err
	}
	t.mu.Unlock()
	s.announce()
	return depth, weight, nil
}

// announce closes Done and calls the watchers, once. The share's err is set, so neither changes any more.
func (s *Share) announce() {
	s.tenure.mu.Lock()
	watchers, done := s.watchers, s.done
	s.watchers = nil
	s.tenure.mu.Unlock()
	if done != nil {
		close(done)
	}
	for _, f := range watchers {
		f(s.err)
	}
}
