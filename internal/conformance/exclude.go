package conformance

import (
	"context"
	"maps"

	"github.com/holdfast-go/holdfast"
)

// exclusion is who keeps whom out, and what a failed try leaves as it was.
var exclusion = []scenario{
	{name: "excludes within a client", run: func(e *env) {
		c := e.client()
		excludes(e, e.lock(c), e.rival(c))
	}},
	{name: "excludes other clients", run: func(e *env) {
		excludes(e, e.lock(e.client()), e.rival(e.client()))
	}},
	{name: "a failed try changes nothing", run: func(e *env) {
		mine, theirs := e.lock(e.client()), e.rival(e.client())
		h := e.must(mine.Lock(e.ctx()))
		before := e.fields()
		for range 3 {
			e.fails(holdfast.ErrNotAcquired)(theirs.TryLock(e.ctx()))
		}
		if after := e.fields(); !maps.Equal(before, after) {
			e.Errorf("the key was\n%v, is\n%v", before, after)
		}
		e.alive(h)
		e.release(h)
	}},
	{name: "a try does not overtake a waiter", run: func(e *env) {
		mine, theirs := e.lock(e.client()), e.rival(e.client())
		h := e.must(mine.Lock(e.ctx()))
		w := e.wait(theirs)
		e.queued(theirs, 1)
		e.fails(holdfast.ErrNotAcquired)(e.lock(e.client()).TryLock(e.ctx()))
		e.queued(theirs, 1)
		w.waits()
		e.release(h)
		e.release(w.served())
	}},
	{name: "other names are free", run: func(e *env) {
		c := e.client()
		h := e.must(e.lock(c).Lock(e.ctx()))
		other := e.kind.lock(c, e.name+".other")
		inside := h.Context(e.ctx())
		o := e.must(other.TryLock(inside))
		both := o.Context(inside)
		for _, l := range []locker{e.lock(c), other} {
			if _, held := l.Held(both); !held {
				e.Error("a context does not carry the holds of two names")
			}
		}
		e.release(h)
		e.alive(o)
		e.release(o)
	}},
	{name: "tokens grow from holder to holder", run: func(e *env) {
		clients := []*holdfast.Client{e.client(), e.client()}
		var last int64
		for i := range 8 {
			h := e.must(e.lock(clients[i%2]).Lock(e.ctx()))
			if h.Token() <= last {
				e.Errorf("token %d after %d", h.Token(), last)
			}
			last = h.Token()
			if s := e.state(e.lock(clients[0])); s.Token != last || len(s.Holders) != 1 || s.Holders[0].Token != last {
				e.Errorf("token %d shows as %+v", last, s)
			}
			e.release(h)
		}
	}},
}

// excludes checks that neither of two lockers gets what the other one holds, and each what it has released.
func excludes(e *env, mine, theirs locker) {
	e.Helper()
	h := e.must(mine.TryLock(e.ctx()))
	e.fails(holdfast.ErrNotAcquired)(theirs.TryLock(e.ctx()))
	e.release(h)
	r := e.must(theirs.TryLock(e.ctx()))
	e.fails(holdfast.ErrNotAcquired)(mine.TryLock(e.ctx()))
	e.release(r)
	e.release(e.must(mine.TryLock(e.ctx())))
}

// sideBySide is about kinds that meet.
var sideBySide = []scenario{
	{name: "the kinds of one name never collide", run: func(e *env) {
		c := e.client()
		var holds []*holdfast.Hold
		for _, make := range []maker{lockMutex, lockFair, lockWrite, takeOf(2, 2)} {
			l := make(c, e.name)
			h := e.must(l.TryLock(e.ctx()))
			if s := e.state(l); len(s.Holders) != 1 || s.Holders[0].Token != h.Token() {
				e.Errorf("held by %+v", s.Holders)
			}
			e.fails(holdfast.ErrNotAcquired)(l.TryLock(context.Background()))
			holds = append(holds, h)
		}
		for _, h := range holds {
			e.alive(h)
			e.release(h)
		}
	}},
}
