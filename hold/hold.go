// Package hold is what an acquisition of any primitive gives: the Hold, the options that shape it, and how a
// context carries it.
package hold

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/internal/tenure"
)

// Hold is one acquisition. It lasts until it is released or lost. Safe for concurrent use; a nil Hold
// behaves like a released one.
type Hold struct {
	share *tenure.Share
}

// Keeper is a tenant who does the traffic of its holds with Redis.
type Keeper interface {
	tenure.Tenant
	// Release gives the share back.
	Release(ctx context.Context, s *tenure.Share) error
	// Extend asks for a full lease from now on.
	Extend(ctx context.Context, t *tenure.Tenure) error
	// Scope is the client and the key under which a context carries the hold.
	Scope() (client any, key string)
}

// New returns a hold on a share of a Keeper's tenure. It is called by the turnstile; users get their holds from the primitives.
func New(share *tenure.Share) *Hold { return &Hold{share: share} }

// Release ends the hold. It works although ctx is done: ctx carries values only. It tries for up to 3 s (for go-redis's
// ReadTimeout, if that is longer, at most 5 s) and then goes on in the background, until the lease must have ended;
// the error then wraps ErrUnavailable.
// The first Release returns nil, a later one ErrReleased, one after a loss ErrLost, one after Close ErrClosed.
func (h *Hold) Release(ctx context.Context) error {
	if h == nil {
		return tenure.ErrReleased
	}
	return h.Keeper().Release(ctx, h.share)
}

// Done returns a channel that is closed when the hold ends: released, lost, or its client closed.
func (h *Hold) Done() <-chan struct{} {
	if h == nil {
		return closed
	}
	h.share.Tenure().Alive()
	return h.share.Done()
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Err returns nil while the hold lasts, then why it ended: an error that wraps ErrReleased, ErrLost (with the
// reason) or ErrClosed.
func (h *Hold) Err() error {
	if h == nil {
		return tenure.ErrReleased
	}
	return h.share.Err()
}

// Valid reports whether the hold lasts. It compares the clock when called, so it is right even just after the
// process was paused. False once is false for ever.
func (h *Hold) Valid() bool { return h.Err() == nil }

// Token returns the fencing token: greater than that of every earlier hold of this name, and the same for
// re-entries. Hand it to what the lock protects, and have that refuse smaller ones. Among readers and semaphore holders,
// who hold at once, it only tells the order of their grants.
//
// All its 64 bits count. Where numbers are doubles, as in Lua and JavaScript, compare it as text: of two the shorter one is
// smaller, of the same length the one that sorts first.
func (h *Hold) Token() int64 {
	if h == nil {
		return 0
	}
	return h.share.Token()
}

// Deadline returns when the hold will be lost if no further renewal goes through. It comes before the server's.
func (h *Hold) Deadline() time.Time {
	if h == nil {
		return time.Time{}
	}
	return h.share.Tenure().Deadline().Time()
}

// Extend asks for a full lease from now on and returns when Redis has granted it: for fixed leases, and to make
// sure at once that the hold is still there. It fails with ErrLost if it is not, and with ErrUnavailable if
// Redis gives no answer before ctx ends or the deadline comes.
func (h *Hold) Extend(ctx context.Context) error {
	if err := h.Err(); err != nil {
		return err
	}
	return h.Keeper().Extend(ctx, h.share.Tenure())
}

// Name returns what is held.
func (h *Hold) Name() string {
	if h == nil {
		return ""
	}
	name, _ := h.share.Tenure().Tenant().Lock()
	return name
}

// LogValue implements slog.LogValuer.
func (h *Hold) LogValue() slog.Value {
	if h == nil {
		return slog.StringValue("<nil>")
	}
	attrs := []slog.Attr{
		slog.String("name", h.Name()),
		slog.String("owner", h.share.Tenure().Tenant().Identity().String()),
		slog.Int64("token", h.Token()),
		slog.Duration("held", h.share.Since().Since()),
	}
	if err := h.Err(); err != nil {
		attrs = append(attrs, slog.String("ended", err.Error()))
	}
	return slog.GroupValue(attrs...)
}

// String describes the hold for messages.
func (h *Hold) String() string {
	if h == nil {
		return "hold <nil>"
	}
	return fmt.Sprintf("hold %q token %d", h.Name(), h.Token())
}

// Keeper returns who does the hold's traffic, for the packages of this library.
func (h *Hold) Keeper() Keeper { return h.share.Tenure().Tenant().(Keeper) }

// Share returns the hold's part of its tenure, likewise.
func (h *Hold) Share() *tenure.Share { return h.share }
