// Package tenure is the leaf of the library: one stretch of possession of a name at the server, its token
// and its local deadline, and the holds that share it. It does no I/O and starts no goroutine.
package tenure

import (
	"fmt"
	"sync"
	"time"
)

// Margin is how much earlier than the server's a local deadline comes: a tenth of the lease, at least 20 ms.
func Margin(lease time.Duration) time.Duration { return max(lease/10, 20*time.Millisecond) }

// Terms are the conditions under which a tenure lasts.
type Terms struct {
	Lease   time.Duration // how long the server keeps it without renewal
	Fixed   bool          // not renewed
	MaxHold time.Duration // renewed no longer than this in all; 0: no limit

	Replicas       int           // that must have acknowledged what prolongs it; 0: none
	ReplicaTimeout time.Duration // how long that is waited for
}

// Tenure is one stretch of possession. The zero value is not usable; see New. Safe for concurrent use.
type Tenure struct {
	Name  string // what the user locked
	Owner string // its identity at the server, "<client id>:<n>"
	Terms Terms

	token    int64
	since    Instant
	limit    Instant // the end set by MaxHold; zero: none
	onEnd    func(cause error)
	renewErr string // guarded by mu, like all that follows

	mu       sync.Mutex
	deadline Instant
	shares   []*Share
	cause    error // set once, when the tenure ended
}

// New returns a tenure that began at since and lasts until deadline, unless it is prolonged. onEnd is called
// once, without locks, when it ends other than by the release of its last share.
func New(name, owner string, terms Terms, token int64, since, deadline Instant, onEnd func(cause error)) *Tenure {
	t := &Tenure{Name: name, Owner: owner, Terms: terms, token: token, since: since, deadline: deadline, onEnd: onEnd}
	if terms.MaxHold > 0 {
		t.limit = since.Add(terms.MaxHold)
		t.deadline = Earlier(t.deadline, t.limit)
	}
	return t
}

// Token returns the fencing token.
func (t *Tenure) Token() int64 { return t.token }

// Since returns when the tenure began, as its client knows it.
func (t *Tenure) Since() Instant { return t.since }

// Deadline returns the instant at which the tenure is lost unless it is prolonged before.
func (t *Tenure) Deadline() Instant {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.deadline
}

// Alive reports whether the tenure lasts. It compares the clock now, so it is right even just after the
// process was paused; once false it is false for ever, and every share has ended.
func (t *Tenure) Alive() bool {
	t.mu.Lock()
	cause, past := t.cause, t.cause == nil && t.deadline.Until() <= 0
	t.mu.Unlock()
	if past {
		t.End(nil)
		return false
	}
	return cause == nil
}

// Cause returns why the tenure ended, nil while it lasts.
func (t *Tenure) Cause() error {
	t.Alive()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cause
}

// Prolong moves the deadline to the end of a lease that the server granted to a request sent at the given
// instant; see ProlongUntil.
func (t *Tenure) Prolong(sent Instant, lease time.Duration) bool {
	return t.ProlongUntil(sent.Add(lease - Margin(lease)))
}

// ProlongUntil moves the deadline, never back, never past MaxHold. An answer that comes after the deadline
// changes nothing: lost stays lost. It reports whether the tenure lasts.
func (t *Tenure) ProlongUntil(deadline Instant) bool {
	t.mu.Lock()
	if t.cause == nil && t.deadline.Until() > 0 {
		if deadline.After(t.deadline) {
			t.deadline = deadline
			if !t.limit.IsZero() {
				t.deadline = Earlier(deadline, t.limit)
			}
		}
		t.renewErr = ""
	}
	t.mu.Unlock()
	return t.Alive()
}

// Failed notes why the last renewal did not go through: a loss wraps it.
func (t *Tenure) Failed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.renewErr = err.Error()
}

// End ends the tenure and all its shares with the cause; nil means that its deadline has passed. Only the
// first call counts.
func (t *Tenure) End(cause error) {
	t.mu.Lock()
	if t.cause != nil {
		t.mu.Unlock()
		return
	}
	if cause == nil {
		cause = t.expiredLocked()
	}
	cause = InLock(t.Name, cause)
	t.cause = cause
	shares := t.shares
	t.shares = nil
	for _, s := range shares {
		s.err = cause
	}
	t.mu.Unlock()
	for _, s := range shares {
		s.announce()
	}
	if t.onEnd != nil {
		t.onEnd(cause)
	}
}

func (t *Tenure) expiredLocked() error {
	why := "its lease ran out"
	switch {
	case !t.limit.IsZero() && t.limit.Until() <= 0:
		why = fmt.Sprintf("MaxHold of %v reached", t.Terms.MaxHold)
	case t.Terms.Fixed:
		why = fmt.Sprintf("its fixed lease of %v ran out", t.Terms.Lease)
	case t.renewErr != "":
		why = "no renewal went through before its deadline, last: " + t.renewErr
	}
	return fmt.Errorf("%w: %s", ErrLost, why)
}

// Join adds a share of the given weight. It fails with the cause once the tenure has ended, and with ErrUpgrade when
// there are shares, and none has so much.
func (t *Tenure) Join(weight int64) (*Share, error) {
	if !t.Alive() {
		return nil, t.Cause()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause != nil {
		return nil, t.cause
	}
	if depth, has := t.levelLocked(); depth > 0 && weight > has {
		return nil, ErrUpgrade
	}
	s := &Share{tenure: t, weight: weight}
	t.shares = append(t.shares, s)
	return s, nil
}

// Level returns the number of shares and the greatest weight among them.
func (t *Tenure) Level() (depth int, weight int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.levelLocked()
}

func (t *Tenure) levelLocked() (depth int, weight int64) {
	for _, s := range t.shares {
		weight = max(weight, s.weight)
	}
	return len(t.shares), weight
}
