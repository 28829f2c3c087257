package hold

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/tenure"
)

// Limits of the durations that options take.
const (
	DefaultLease = 30 * time.Second
	MinLease     = 100 * time.Millisecond
	MaxLease     = 24 * time.Hour
)

// Settings are what the options of one primitive add up to.
type Settings struct {
	tenure.Terms
	Wait         time.Duration // an acquire gives up after this; 0: only its context bounds it
	NonReentrant bool
	err          error
}

// MaxReplicas is how many replicas can be waited for.
const MaxReplicas = 100

// Option sets how a primitive acquires and holds. A bad value is reported as ErrInvalid by the first call.
type Option func(*Settings)

// Lease sets how long a hold outlives its client: 100 ms to 24 h, by default 30 s. While the client lives,
// the hold is renewed every third of it until it is released.
func Lease(d time.Duration) Option {
	return func(s *Settings) {
		s.check("Lease", d, MinLease, MaxLease)
		s.Lease, s.Fixed = d, false
	}
}

// FixedLease sets a lease that is not renewed, 100 ms to 24 h: the hold is lost when it has run out, unless
// Extend is called before. A mutex with it is not passed on inside a client: every hold has its full lease.
func FixedLease(d time.Duration) Option {
	return func(s *Settings) {
		s.check("FixedLease", d, MinLease, MaxLease)
		s.Lease, s.Fixed = d, true
	}
}

// MaxHold limits how long a hold is renewed in all, at least 100 ms: then it is lost. By default there is no limit. A
// mutex with it is not passed on inside a client.
func MaxHold(d time.Duration) Option {
	return func(s *Settings) {
		s.check("MaxHold", d, MinLease, 1<<63-1)
		s.MaxHold = d
	}
}

// Wait limits how long an acquire waits, in addition to its context: it then fails with ErrNotAcquired. It does
// not limit the work under the hold. At least 1 ms; by default there is no limit. Try methods do not wait at all.
func Wait(d time.Duration) Option {
	return func(s *Settings) {
		s.check("Wait", d, time.Millisecond, 1<<63-1)
		s.Wait = d
	}
}

// Replicas has every acquire and renewal wait until n replicas, 1 to 100, have acknowledged it (WAIT), for at most
// timeout, 1 ms to a third of the lease, and less than go-redis's ReadTimeout. An acquire with fewer acknowledgements is undone and fails with
// ErrUnavailable; a renewal with fewer does not prolong the hold, so that a master that was cut off from its replicas
// cannot keep it alive. Every acquire costs the replicas' round trip. By default nothing is waited for. It
// narrows the window in which a failover loses a hold, it does not close it: another replica may be promoted.
func Replicas(n int, timeout time.Duration) Option {
	return func(s *Settings) {
		if n < 1 || n > MaxReplicas {
			s.err = errors.Join(s.err, fmt.Errorf("%w: Replicas of %d, 1 to %d are possible", tenure.ErrInvalid, n, MaxReplicas))
		}
		s.check("timeout of Replicas", timeout, time.Millisecond, MaxLease/3)
		s.Replicas, s.ReplicaTimeout = n, timeout
	}
}

// NonReentrant makes an acquire with a hold's context wait like anybody else's: for itself, if nothing else
// releases the outer hold.
func NonReentrant() Option {
	return func(s *Settings) { s.NonReentrant = true }
}

func (s *Settings) check(option string, d, low, high time.Duration) {
	switch {
	case d < low:
		s.err = errors.Join(s.err, fmt.Errorf("%w: %s of %v, at least %v is needed", tenure.ErrInvalid, option, d, low))
	case d > high:
		s.err = errors.Join(s.err, fmt.Errorf("%w: %s of %v, at most %v is possible", tenure.ErrInvalid, option, d, high))
	}
}

// Resolve applies the options in order, later ones over earlier ones.
func Resolve(options ...Option) (Settings, error) {
	s := Settings{Terms: tenure.Terms{Lease: DefaultLease}}
	for _, o := range options {
		if o != nil {
			o(&s)
		}
	}
	if s.Replicas > 0 && s.ReplicaTimeout > s.Lease/3 {
		s.err = errors.Join(s.err, fmt.Errorf("%w: timeout of Replicas of %v, at most a third of the lease of %v is possible",
			tenure.ErrInvalid, s.ReplicaTimeout, s.Lease))
	}
	return s, s.err
}
