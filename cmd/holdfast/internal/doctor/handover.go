package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast"
)

const (
	handovers = 2 // the first may come before the subscription stands
	// told is how long a handover takes at most when the waiter is told; by polling it takes about half a second.
	told = 250 * time.Millisecond
	// patience bounds the whole check.
	patience = 10 * time.Second
)

// checkHandover has a lock go from one client to another: that shows that messages arrive, through whatever stands between.
func (e *exam) checkHandover(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	options := []holdfast.Option{holdfast.Prefix(e.Prefix), holdfast.Label("doctor"), holdfast.Logger(slog.New(slog.DiscardHandler))}
	var locks [2]*holdfast.FairLock
	for i := range locks {
		client, err := holdfast.New(e.UniversalClient, options...)
		if err != nil {
			e.add("handover", Fail, err.Error(), "")
			return
		}
		defer func() { _ = client.Close(ctx) }() // a lease ends what is left
		locks[i] = client.FairLock("holdfast-doctor:" + e.nonce)
	}
	best := time.Hour
	for i := 0; i < handovers && best > told; i++ {
		took, err := handover(ctx, locks[0], locks[1])
		if err != nil {
			e.add("handover", Fail, fmt.Sprintf("a lock could not be taken and passed on: %v", err), "")
			return
		}
		best = min(best, took)
	}
	if best > told {
		e.add("handover", Warn, fmt.Sprintf("a waiter got the lock %v after its release: it polled, messages do not arrive", best.Round(time.Millisecond)),
			"allow the channels, or look at the proxy in between; or say PollOnly to know what you have")
		return
	}
	e.add("handover", OK, fmt.Sprintf("a waiter got the lock %v after its release", round(best)), "")
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
