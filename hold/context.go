package hold

import "context"

// scope is the key under which a context carries a hold: ownership belongs to one client.
type scope struct {
	client any
	key    string
}

// carrier is a context inside a hold. The context below it ends with the hold; the hold itself hangs on the
// carrier only, so that what ends the context does not keep a forgotten Hold from being noticed.
type carrier struct {
	context.Context
	hold *Hold
}

// some asks whether a context carries any hold.
type some struct{}

// Value finds the hold while it lasts. Under a hold that has ended it looks on: an outer one may last.
func (c carrier) Value(key any) any {
	if key == any(some{}) {
		return true
	}
	if s, ok := key.(scope); ok {
		if client, key := c.hold.Keeper().Scope(); s.client == client && s.key == key && c.hold.Valid() {
			return c.hold
		}
	}
	return c.Context.Value(key)
}

// Context returns a context inside the hold: acquiring the same name with it re-enters. It ends with the hold
// (context.Cause tells why: ErrLost, ErrReleased, ErrClosed) and with parent. Everything derived from it is
// inside too, other goroutines included: they do not exclude each other. See WithoutHolds. Make one for a piece of
// work, not one for each call: a context is remembered until parent or the hold ends.
func (h *Hold) Context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	if h == nil {
		cancel(h.Err())
		return ctx
	}
	stop := h.share.OnEnd(cancel)
	context.AfterFunc(ctx, stop) // parent ended: forget the watcher
	return carrier{ctx, h}
}

// Carried returns the live hold of a client and key that ctx carries.
func Carried(ctx context.Context, client any, key string) (*Hold, bool) {
	if ctx.Value(some{}) == nil {
		return nil, false // most do not, and this costs no allocation
	}
	h, ok := ctx.Value(scope{client, key}).(*Hold)
	return h, ok
}

// outside is a context that carries no hold.
type outside struct{ context.Context }

func (o outside) Value(key any) any {
	if _, ok := key.(scope); ok {
		return nil
	}
	return o.Context.Value(key)
}

// WithoutHolds returns a context like ctx that owns nothing: acquiring with it waits like anybody, for
// background work that must not count as inside. It still ends when ctx ends; see context.WithoutCancel.
func WithoutHolds(ctx context.Context) context.Context { return outside{ctx} }
