package holdfast

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/hold"
	"github.com/holdfast-go/holdfast/internal/config"
)

// Option configures a Client. A bad value is an error from New.
type Option func(*config.Config)

// DefaultPrefix starts every key and channel unless Prefix says otherwise.
const DefaultPrefix = "holdfast:"

const maxLabel = 19

var validLabel = regexp.MustCompile(`^[A-Za-z0-9._-]{1,19}$`)

// Prefix sets what every key and channel starts with, 1 to 256 bytes, by default "holdfast:". Clients exclude
// each other only with the same prefix.
func Prefix(prefix string) Option {
	return func(c *config.Config) {
		if len(prefix) == 0 || len(prefix) > 256 {
			c.Err = errors.Join(c.Err, fmt.Errorf("%w: Prefix of %d bytes, 1 to 256 are possible", ErrInvalid, len(prefix)))
		}
		c.Prefix = prefix
	}
}

// Label adds a word to the client's id that Inspect shows: a host, an application. 1 to 19 letters, digits,
// dots, dashes and underscores. By default it is the end of the host's name and the process id, "web-7f9c4-31022".
func Label(label string) Option {
	return func(c *config.Config) {
		if !validLabel.MatchString(label) {
			c.Err = errors.Join(c.Err, fmt.Errorf("%w: Label %q, 1 to 19 of A-Z a-z 0-9 . _ - are possible", ErrInvalid, label))
		}
		c.Label = label
	}
}

// defaultLabel tells host and process. Of a long host name the end is what differs.
func defaultLabel() string {
	pid := "-" + strconv.Itoa(os.Getpid())
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	host, _, _ = strings.Cut(host, ".") // the domain is the same for all
	host = strings.Map(func(r rune) rune {
		if r < 128 && validLabel.MatchString(string(r)) {
			return r
		}
		return '_'
	}, host)
	return strings.TrimLeft(host[max(len(host)-(maxLabel-len(pid)), 0):]+pid, "-")
}

// Logger sets where the client logs, by default slog.Default(). Nil logs nothing.
func Logger(log *slog.Logger) Option {
	return func(c *config.Config) {
		if log == nil {
			log = slog.New(slog.DiscardHandler)
		}
		c.Logger = log
	}
}

// Observe has the observer told what the client does, for metrics and traces; holdfastotel has one for OpenTelemetry. By
// default nobody is told.
func Observe(o Observer) Option {
	return func(c *config.Config) { c.Observer = &o }
}

// PollOnly keeps the client from subscribing: waiters poll about once a second. For proxies and services
// without pub/sub. Where only a right is missing, the client finds out by itself.
func PollOnly() Option {
	return func(c *config.Config) { c.PollOnly = true }
}

// Defaults sets lock options for every primitive of the client. The primitive's own come after them.
func Defaults(options ...LockOption) Option {
	return func(c *config.Config) {
		c.Defaults = options
		if _, err := hold.Resolve(options...); err != nil {
			c.Err = errors.Join(c.Err, fmt.Errorf("Defaults: %w", err))
		}
	}
}

// LockOption sets how a primitive acquires and holds. A bad value is reported as ErrInvalid by the first call.
type LockOption = hold.Option

// Lease sets how long a hold outlives its client: 100 ms to 24 h, by default 30 s. While the client lives, the
// hold is renewed every third of it until it is released.
func Lease(d time.Duration) LockOption { return hold.Lease(d) }

// FixedLease sets a lease that is not renewed, 100 ms to 24 h: the hold is lost when it has run out, unless
// Hold.Extend is called before. A mutex with it is not passed on inside a client: every hold has its full lease.
func FixedLease(d time.Duration) LockOption { return hold.FixedLease(d) }

// MaxHold limits how long a hold is renewed in all, at least 100 ms: then it is lost. By default there is no limit. A
// mutex with it is not passed on inside a client.
func MaxHold(d time.Duration) LockOption { return hold.MaxHold(d) }

// Wait limits how long an acquire waits, in addition to its context: it then fails with ErrNotAcquired. It does
// not limit the work under the hold. At least 1 ms; by default there is no limit.
func Wait(d time.Duration) LockOption { return hold.Wait(d) }

// Replicas has every acquire and renewal wait until n replicas, 1 to 100, have acknowledged it (WAIT), for at most
// timeout, 1 ms to a third of the lease, and less than go-redis's ReadTimeout. An acquire with fewer acknowledgements is undone and fails with
// ErrUnavailable; a renewal with fewer does not prolong the hold. It narrows the window in which a failover loses a
// hold, it does not close it. By default nothing is waited for.
func Replicas(n int, timeout time.Duration) LockOption { return hold.Replicas(n, timeout) }

// NonReentrant makes an acquire with a hold's context wait like anybody else's.
func NonReentrant() LockOption { return hold.NonReentrant() }
