package conformance

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// waiter is an acquisition that blocks.
type waiter struct {
	e      *env
	cancel context.CancelCauseFunc
	got    chan struct{} // closed when it has returned
	hold   *holdfast.Hold
	err    error
}

// wait starts an acquisition and returns when it blocks, or has failed to.
func (e *env) wait(l locker) *waiter { return e.waitWith(e.ctx(), l) }

func (e *env) waitWith(ctx context.Context, l locker) *waiter {
	ctx, cancel := context.WithCancelCause(ctx)
	b := &blocking{Context: ctx, blocks: make(chan struct{})}
	w := &waiter{e: e, cancel: cancel, got: make(chan struct{})}
	go func() {
		w.hold, w.err = l.Lock(b)
		close(w.got)
	}()
	e.Cleanup(func() { // a failed scenario leaves none behind
		cancel(context.Canceled)
		<-w.got
	})
	select {
	case <-b.blocks:
	case <-w.got:
	}
	return w
}

// waits checks that the acquisition still blocks.
func (w *waiter) waits() {
	w.e.Helper()
	if closed(w.got) {
		w.e.Errorf("it does not wait: %v, error %v", w.hold, w.err)
	}
}

// served waits for the hold.
func (w *waiter) served() *holdfast.Hold {
	w.e.Helper()
	w.returns()
	return w.e.must(w.hold, w.err)
}

// failed waits for the error.
func (w *waiter) failed(want ...error) {
	w.e.Helper()
	w.returns()
	w.e.fails(want...)(w.hold, w.err)
}

func (w *waiter) returns() {
	w.e.Helper()
	select {
	case <-w.got:
	case <-time.After(w.e.soon()):
		w.e.Fatalf("still waiting after %v", w.e.soon())
	}
}

// blocking is a context that tells when somebody begins to wait for its end.
type blocking struct {
	context.Context
	once   sync.Once
	blocks chan struct{}
}

func (b *blocking) Done() <-chan struct{} {
	b.once.Do(func() { close(b.blocks) })
	return b.Context.Done()
}
