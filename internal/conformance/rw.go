package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
)

// outcome is what a try comes to.
type outcome string

const (
	acquires outcome = "acquires"
	again    outcome = "re-enters"
	busy     outcome = "ErrNotAcquired"
	upgrade  outcome = "ErrUpgrade"
)

// rwRow is one state of an RWLock, and what tries of mine come to there: with the context of my (innermost)
// hold, and with a plain one. Where I hold nothing, "my hold" is one that has ended, its context detached.
type rwRow struct {
	state                 string
	set                   func(r *rwScene)
	writeInside           outcome // TryLock with my hold's context
	readInside            outcome // TryRLock with my hold's context
	writePlain, readPlain outcome
}

var rwTable = []rwRow{
	{"free", func(r *rwScene) {}, acquires, acquires, acquires, acquires},
	{"read by me", func(r *rwScene) { r.takes(r.me.RLock) }, upgrade, again, busy, acquires},
	{"read by another", func(r *rwScene) { r.take(r.other.RLock(r.e.ctx())) }, busy, acquires, busy, acquires},
	{"read by me and by another", func(r *rwScene) { r.takes(r.me.RLock); r.take(r.other.RLock(r.e.ctx())) }, upgrade, again, busy, acquires},
	{"write by me", func(r *rwScene) { r.takes(r.me.Lock) }, again, again, busy, busy},
	{"write by another", func(r *rwScene) { r.take(r.other.Lock(r.e.ctx())) }, busy, busy, busy, busy},
	{"read under my write", func(r *rwScene) { r.takes(r.me.Lock); r.takes(r.me.RLock) }, again, again, busy, busy},
	{"downgraded", func(r *rwScene) {
		write := r.takes(r.me.Lock)
		read := r.takes(r.me.RLock)
		r.e.release(write)
		r.inside = read.Context(r.e.ctx())
	}, upgrade, again, busy, acquires},
}

// rwScene is an RWLock as a row of the table sets it.
type rwScene struct {
	e         *env
	me, other *holdfast.RWLock
	inside    context.Context
	holds     []*holdfast.Hold // in the order in which they were taken
}

// takes acquires within what I hold so far.
func (r *rwScene) takes(acquire func(context.Context) (*holdfast.Hold, error)) *holdfast.Hold {
	h := r.take(acquire(r.inside))
	r.inside = h.Context(r.inside)
	return h
}

func (r *rwScene) take(h *holdfast.Hold, err error) *holdfast.Hold {
	r.e.Helper()
	r.holds = append(r.holds, r.e.must(h, err))
	return h
}

// try makes a try and puts what it comes to into a word.
func (r *rwScene) try(acquire func(context.Context) (*holdfast.Hold, error), ctx context.Context) outcome { //nolint:revive // reads as it is used
	h, err := acquire(ctx)
	switch {
	case errors.Is(err, holdfast.ErrUpgrade):
		return upgrade
	case errors.Is(err, holdfast.ErrNotAcquired):
		return busy
	case err != nil:
		return outcome(err.Error())
	}
	defer r.e.release(h)
	for _, mine := range r.holds {
		if mine.Token() == h.Token() {
			return again
		}
	}
	return acquires
}

// rwScenarios is the table, and what only an RWLock promises.
func rwScenarios() []scenario {
	scenarios := []scenario{
		{name: "a reader under a writer stays when the write ends", run: downgrades},
		{name: "a waiting writer is not overtaken by readers", run: func(e *env) {
			me, other := e.client(e.patient()).RWLock(e.name), e.client(e.patient()).RWLock(e.name)
			read := e.must(me.RLock(e.ctx()))
			w := e.wait(lockOf(other))
			e.queued(lockOf(other), 1)
			readers := []*waiter{e.wait(readOf(me)), e.wait(readOf(other))}
			e.queued(lockOf(other), 3)
			e.release(read)
			write := w.served()
			for _, r := range readers {
				r.waits()
			}
			e.release(write)
			for _, r := range readers { // both enter together
				defer e.release(r.served())
			}
		}},
		{name: "a writer that gives up lets the readers in", run: func(e *env) {
			me, other := e.client(e.patient()).RWLock(e.name), e.client(e.patient()).RWLock(e.name)
			read := e.must(me.RLock(e.ctx()))
			w := e.wait(lockOf(other))
			e.queued(lockOf(other), 1)
			r := e.wait(readOf(me))
			e.queued(lockOf(other), 2)
			w.cancel(errBoom)
			w.failed(errBoom)
			e.release(r.served())
			e.alive(read)
			e.release(read)
		}},
		{name: "an upgrade fails at once", run: func(e *env) {
			me := e.client().RWLock(e.name)
			read := e.must(me.RLock(e.ctx()))
			inside := read.Context(e.ctx())
			began := time.Now()
			e.fails(holdfast.ErrUpgrade)(me.Lock(inside))
			e.is(me.Do(inside, func(context.Context) error { e.Error("Do ran"); return nil }), holdfast.ErrUpgrade)
			if took := time.Since(began); took > soon {
				e.Errorf("it took %v", took)
			}
			e.alive(read)
			e.release(read)
			e.release(e.must(me.Lock(e.ctx())))
		}},
		{name: "two readers of a client hold separately", run: func(e *env) {
			c := e.client()
			one := e.must(c.RWLock(e.name).RLock(e.ctx()))
			two := e.must(c.RWLock(e.name).RLock(e.ctx()))
			if s := e.state(lockOf(c.RWLock(e.name))); len(s.Holders) != 2 || one.Token() == two.Token() {
				e.Errorf("held by %+v", s.Holders)
			}
			e.release(one)
			e.alive(two)
			e.release(two)
		}},
		{name: "NonReentrant readers hold separately", run: func(e *env) {
			l := e.client().RWLock(e.name, holdfast.NonReentrant())
			one := e.must(l.RLock(e.ctx()))
			two := e.must(l.RLock(one.Context(e.ctx())))
			if s := e.state(lockOf(l)); len(s.Holders) != 2 {
				e.Errorf("held by %+v", s.Holders)
			}
			e.release(one)
			e.release(two)
		}},
	}
	for _, row := range rwTable {
		scenarios = append(scenarios, scenario{name: "table: " + row.state, run: func(e *env) { row.check(e) }})
	}
	return scenarios
}

// check sets the state and makes the four tries. Each leaves the state as it was.
func (row rwRow) check(e *env) {
	r := &rwScene{e: e, me: e.client().RWLock(e.name), other: e.client().RWLock(e.name)}
	ended := e.must(r.me.RLock(e.ctx()))
	r.inside = context.WithoutCancel(ended.Context(e.ctx()))
	e.release(ended)
	row.set(r)
	for _, try := range []struct {
		what      string
		got, want outcome
	}{
		{"TryLock inside", r.try(r.me.TryLock, r.inside), row.writeInside},
		{"TryRLock inside", r.try(r.me.TryRLock, r.inside), row.readInside},
		{"TryLock plain", r.try(r.me.TryLock, e.ctx()), row.writePlain},
		{"TryRLock plain", r.try(r.me.TryRLock, e.ctx()), row.readPlain},
	} {
		if try.got != try.want {
			e.Errorf("%s: %s, want %s", try.what, try.got, try.want)
		}
	}
	for _, h := range r.holds {
		if h.Valid() {
			e.release(h)
		}
	}
}

// downgrades keeps a nested read hold when the write hold is released: other readers enter at once.
func downgrades(e *env) {
	me, other := e.client(e.patient()).RWLock(e.name), e.client(e.patient()).RWLock(e.name)
	write := e.must(me.Lock(e.ctx()))
	read := e.must(me.RLock(write.Context(e.ctx())))
	if read.Token() != write.Token() {
		e.Error("the read is not under the write")
	}
	w := e.wait(readOf(other))
	e.queued(readOf(other), 1)
	w.waits()
	e.release(write)
	theirs := w.served()
	e.alive(read)
	e.fails(holdfast.ErrNotAcquired)(other.TryLock(e.ctx()))
	e.release(theirs)
	e.release(read)
	e.release(e.must(other.TryLock(e.ctx())))
}

func lockOf(l *holdfast.RWLock) locker {
	return locker{Lock: l.Lock, TryLock: l.TryLock, Inspect: l.Inspect}
}

func readOf(l *holdfast.RWLock) locker {
	return locker{Lock: l.RLock, TryLock: l.TryRLock, Inspect: l.Inspect}
}
