package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/hold"
)

const (
	handovers = 2 // the first may come before the subscription stands
	// patience bounds the whole check.
	patience = 10 * time.Second
)

// checkHandover has a lock go from one client to another: that shows whether messages arrive, through whatever stands
// between.
func (e *exam) checkHandover(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var pushed atomic.Bool
	observer := holdfast.Observer{Acquired: func(_ context.Context, _ hold.Lock, a hold.Acquisition) {
		pushed.Store(a.How == hold.Pushed) // the holder's own are over when the waiter's comes
	}}
	var locks [2]*holdfast.FairLock
	for i := range locks {
		client, err := holdfast.New(e.UniversalClient, holdfast.Prefix(e.Prefix), holdfast.Label("doctor"),
			holdfast.Logger(slog.New(slog.DiscardHandler)), holdfast.Observe(observer))
		if err != nil {
			e.add("handover", Fail, err.Error(), "")
			return
		}
		defer func() { _ = client.Close(ctx) }() // a lease ends what is left
		locks[i] = client.FairLock("holdfast-doctor:" + e.nonce)
	}
	var took time.Duration
	for i := 0; i < handovers && !pushed.Load(); i++ {
		var err error
		if took, err = handover(ctx, locks[0], locks[1]); err != nil {
			e.add("handover", Fail, fmt.Sprintf("a lock could not be taken and passed on: %v", err), "")
			return
		}
	}
	if !pushed.Load() {
		e.add("handover", Warn, fmt.Sprintf("a waiter got the lock %v after its release: it polled, messages do not arrive", took.Round(time.Millisecond)),
			"allow the channels, or look at the proxy in between; or say PollOnly to know what you have")
		return
	}
	e.add("handover", OK, fmt.Sprintf("a waiter got the lock %v after its release", round(took)), "")
}

// handover tells how long after a release the waiter had the lock.
func handover(ctx context.Context, holder, waiter *holdfast.FairLock) (time.Duration, error) {
	first, err := holder.Lock(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = first.Release(ctx) }() // if it was not released below
	type grant struct {
		err error
		at  time.Time
	}
	granted := make(chan grant, 1)
	go func() { // ends with ctx at the latest
		second, err := waiter.Lock(ctx)
		granted <- grant{err, time.Now()}
		if err == nil {
			_ = second.Release(ctx) // a lease ends what is left
		}
	}()
	for { // until it is queued
		state, err := holder.Inspect(ctx)
		if err != nil {
			return 0, err
		}
		if len(state.Queue) > 0 {
			break
		}
		select {
		case <-time.After(time.Millisecond):
		case g := <-granted:
			return 0, errors.Join(errors.New("the waiter did not wait"), g.err)
		}
	}
	released := time.Now()
	if err := first.Release(ctx); err != nil {
		return 0, err
	}
	g := <-granted
	return g.at.Sub(released), g.err
}
