package conformance

import (
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

// checks is what is refused before anything is sent, and what Inspect shows.
var checks = []scenario{
	{name: "a bad name is refused before anything is sent", run: func(e *env) {
		c, sent := e.countedClient()
		for _, name := range []string{"", strings.Repeat("x", 1025)} {
			everyCall(e, e.kind.lock(c, name), e.ctx(), holdfast.ErrInvalid)
		}
		if n := sent.n.Load(); n != 0 {
			e.Errorf("%d commands were sent", n)
		}
	}},
	{name: "a bad option is refused before anything is sent", run: func(e *env) {
		c, sent := e.countedClient()
		for what, o := range map[string]holdfast.LockOption{
			"no lease":             holdfast.Lease(0),
			"short lease":          holdfast.Lease(99 * time.Millisecond),
			"long lease":           holdfast.Lease(24*time.Hour + 1),
			"negative fixed lease": holdfast.FixedLease(-time.Second),
			"long fixed lease":     holdfast.FixedLease(25 * time.Hour),
			"no MaxHold":           holdfast.MaxHold(0),
			"short MaxHold":        holdfast.MaxHold(99 * time.Millisecond),
			"no Wait":              holdfast.Wait(0),
			"negative Wait":        holdfast.Wait(-time.Second),
		} {
			everyCall(e, e.lock(c, o), e.ctx(), holdfast.ErrInvalid)
			if e.Failed() {
				e.Fatalf("with %s", what)
			}
		}
		if n := sent.n.Load(); n != 0 {
			e.Errorf("%d commands were sent", n)
		}
	}},
	{name: "any name works", run: func(e *env) {
		c := e.client()
		for _, tail := range []string{" with spaces", "\x00\xff\r\n", "{tag}*?[x]", ":h:", strings.Repeat("ü", (1024-len(e.name))/2)} {
			l := e.kind.lock(c, e.name+tail)
			h := e.must(l.TryLock(e.ctx()))
			if s := e.state(l); len(s.Holders) != 1 || s.Name != e.name+tail {
				e.Errorf("%q is held by %+v", tail, s)
			}
			e.release(h)
		}
	}},
	{name: "Inspect shows holders and waiters with labels", run: func(e *env) {
		one, two := e.client(holdfast.Label("one")), e.client(holdfast.Label("two"))
		mine, theirs := e.lock(one), e.rival(two)
		if s := e.state(mine); s.Held() || len(s.Queue) != 0 || s.Token != 0 || s.Name != e.name {
			e.Errorf("the idle name shows as %+v", s)
		}
		h := e.must(mine.Lock(e.ctx()))
		w := e.wait(theirs)
		e.queued(theirs, 1)
		s := e.state(e.lock(e.client()))
		if len(s.Holders) != 1 {
			e.Fatalf("held by %+v", s.Holders)
		}
		if o := s.Holders[0]; o.Label != "one" || o.Client != one.ID() || !strings.HasPrefix(o.Owner, one.ID()+":") || o.Depth != 1 ||
			o.Weight != e.kind.weight || o.Token != h.Token() || o.LeaseLeft <= 20*time.Second || o.LeaseLeft > 30*time.Second {
			e.Errorf("held by %+v", o)
		}
		if q := s.Queue[0]; q.Label != "two" || q.Client != two.ID() || !strings.HasPrefix(q.Owner, two.ID()+":") || !q.Alive ||
			q.Weight < e.kind.weight || q.Capacity < q.Weight {
			e.Errorf("queued is %+v", q)
		}
		w.cancel(errBoom)
		w.failed(errBoom)
		e.release(h)
	}},
}
