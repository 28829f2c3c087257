// Package tenure is the leaf of the library: one stretch of possession of a name at the server, its token
// and its local deadline, and the holds that share it. It does no I/O and starts no goroutine.
package tenure

import (
	"fmt"
	"strconv"
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

// Tenure is one stretch of possession at the server. Its holds share it in sessions: those of one session are re-entries
// of each other and have one token; a session begins when the tenure is passed on inside the client, after the
// one before has ended. The zero value is not usable; see New. Safe for concurrent use.
type Tenure struct {
	Terms *Terms // not changed any more

	token  int64   // as the server counts
	since  Instant // when the client knew of it
	tenant Tenant

	mu       sync.Mutex // guards what follows, and every share
	deadline Instant
	last     int64  // token of the latest session
	proven   int64  // base of the next one, if it is greater; see Prolong
	first    *Share // of the shares that last
	cause    error  // set once, when the tenure ended
	renewErr error
}

// Owner is an identity at the server: of the acquisition with that number of a client. Its text is "<client id>:<n>".
type Owner struct {
	Client string
	N      uint64
}

func (o Owner) String() string { return o.Client + ":" + strconv.FormatUint(o.N, 10) }

// Tenant is who has a tenure.
type Tenant interface {
	// Lock returns what the user locked, and the key that stands for it.
	Lock() (name, key string)
	// Identity is the one at the server.
	Identity() Owner
	// Ended is called once, without locks, when the tenure ends other than by the release of its last share.
	Ended(cause error)
}

// New returns a tenure that began at since and lasts until deadline, unless it is prolonged.
func New(tenant Tenant, terms *Terms, token int64, since, deadline Instant) *Tenure {
	t := new(Tenure)
	t.Init(tenant, terms, token, since, deadline)
	return t
}

// Init is New for a tenure that is part of something else.
func (t *Tenure) Init(tenant Tenant, terms *Terms, token int64, since, deadline Instant) {
	t.tenant, t.Terms, t.token, t.last, t.since, t.deadline = tenant, terms, token, FirstToken(token), since, deadline
	if terms.MaxHold > 0 {
		t.deadline = Earlier(t.deadline, t.limit())
	}
}

// limit is the end that MaxHold sets.
func (t *Tenure) limit() Instant { return t.since.Add(t.Terms.MaxHold) }

// Token returns the token that the server gave, as it counts them.
func (t *Tenure) Token() int64 { return t.token }

// Base returns the highest base of a token handed out. Renewals and the release carry it back to the server: it may be
// all that is left of the server's clock, should that go back.
func (t *Tenure) Base() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return BaseOf(t.last)
}

// nextLocked returns the token of the next session; false when there is none before the next proof.
func (t *Tenure) nextLocked() (token int64, ok bool) {
	token = max(t.last, FirstToken(t.proven)) + 1
	return token, PassedOn(token)
}

// Tenant returns who has it.
func (t *Tenure) Tenant() Tenant { return t.tenant }

// inLock names what is locked in an error.
func (t *Tenure) inLock(err error) error {
	if err == nil {
		return nil
	}
	name, _ := t.tenant.Lock()
	return InLock(name, err)
}

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
	now := Now()
	t.mu.Lock()
	cause, past := t.cause, t.pastLocked(now)
	t.mu.Unlock()
	if past {
		t.End(nil)
		return false
	}
	return cause == nil
}

func (t *Tenure) pastLocked(now Instant) bool { return t.cause == nil && t.deadline.Sub(now) <= 0 }

// Cause returns why the tenure ended, nil while it lasts.
func (t *Tenure) Cause() error {
	t.Alive()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inLock(t.cause)
}

// Prolong takes in that the server knew the tenure, by its token, when its clock read proof, in ms (0: that was not told),
// and granted it a lease, for a request that was sent at the given instant: the deadline moves, never back, never past
// MaxHold, and the next grant may be made while the server's clock still reads the same. An answer that comes after the
// deadline changes nothing: lost stays lost. It reports whether the tenure lasts. now is read after the answer came.
func (t *Tenure) Prolong(sent Instant, lease time.Duration, proof int64, now Instant) bool {
	return t.prolong(sent.Add(lease-Margin(lease)), proof, now)
}

// ProlongUntil is Prolong with a deadline.
func (t *Tenure) ProlongUntil(deadline Instant) bool { return t.prolong(deadline, 0, Now()) }

func (t *Tenure) prolong(deadline Instant, proof int64, now Instant) bool {
	t.mu.Lock()
	if t.pastLocked(now) {
		t.mu.Unlock()
		t.End(nil)
		return false
	}
	defer t.mu.Unlock()
	if t.cause != nil {
		return false
	}
	if deadline.After(t.deadline) {
		t.deadline = deadline
		if t.Terms.MaxHold > 0 {
			t.deadline = Earlier(deadline, t.limit())
		}
	}
	if proof > 0 {
		t.proven = max(t.proven, proof*1000-1)
	}
	t.renewErr = nil
	return true
}

// Failed notes why the last renewal did not go through: a loss wraps it.
func (t *Tenure) Failed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.renewErr = err
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
	cause = t.inLock(cause)
	t.cause = cause
	first := t.first
	t.first = nil
	for s := first; s != nil; s = s.next {
		s.err = cause
	}
	t.mu.Unlock()
	for s := first; s != nil; s = s.next {
		s.announce()
	}
	t.tenant.Ended(cause)
}

func (t *Tenure) expiredLocked() error {
	why := "its lease ran out"
	switch {
	case t.Terms.MaxHold > 0 && t.limit().Until() <= 0:
		why = fmt.Sprintf("MaxHold of %v reached", t.Terms.MaxHold)
	case t.Terms.Fixed:
		why = fmt.Sprintf("its fixed lease of %v ran out", t.Terms.Lease)
	case t.renewErr != nil:
		why = "no renewal went through before its deadline, last: " + t.renewErr.Error()
	}
	return fmt.Errorf("%w: %s", ErrLost, why)
}

// Join adds the first share of a tenure. It fails with the cause once the tenure has ended.
func (t *Tenure) Join(weight int64) (*Share, error) {
	s := new(Share)
	return s, t.Begin(s, weight)
}

// Begin is Join with a share that is part of something else.
func (t *Tenure) Begin(s *Share, weight int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause != nil {
		return t.inLock(t.cause)
	}
	t.addLocked(s, weight, t.last, t.since)
	return nil
}

func (t *Tenure) addLocked(s *Share, weight, token int64, since Instant) {
	s.tenure, s.weight, s.token, s.since, s.next = t, weight, token, since, t.first
	t.first = s
}

// Standing is Level, and what Base returns.
func (t *Tenure) Standing() (depth int, weight, base int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	depth, weight = t.levelLocked()
	return depth, weight, BaseOf(t.last)
}

// Level returns the number of shares and the greatest weight among them.
func (t *Tenure) Level() (depth int, weight int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.levelLocked()
}

func (t *Tenure) levelLocked() (depth int, weight int64) {
	for s := t.first; s != nil; s = s.next {
		depth, weight = depth+1, max(weight, s.weight)
	}
	return depth, weight
}
