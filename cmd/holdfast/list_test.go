//go:build unix

package main_test

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// name is what ls and inspect print as JSON.
type name struct {
	Kind    string
	Name    string
	Bytes   string `json:"name_base64"`
	Token   int64
	Holders []struct {
		Owner, Client, Label string
		Depth                int
		Weight, Token        int64
		HeldFor              *int64 `json:"held_for_ms"`
		LeaseLeft            int64  `json:"lease_left_ms"`
	}
	Queue []struct {
		Owner, Client, Label string
		Weight, Capacity     int64
		Alive                bool
	}
}

func TestLs(t *testing.T) {
	s := newSite(t)
	s.want(0, []string{"ls"}, "Nothing is held")
	if r := s.want(0, []string{"ls", "--json"}); strings.TrimSpace(r.out) != "[]" {
		t.Errorf("nothing as JSON: %q", r.out)
	}
	a, b := s.client("web-1"), s.client("web-2")
	held := s.lock(a.Mutex("orders:1"))
	s.wait(b, b.Mutex("orders:1"), mutex("orders:1"))
	s.lock(a.FairLock("orders:2"))
	s.lock(a.RWLock("odd \xff name"))

	r := s.want(0, []string{"ls"}, "KIND", "orders:1", "orders:2", `"odd \xff name"`, "web-1/"+a.ID()[:6])
	if lines := strings.Count(r.out, "\n"); lines != 4 {
		t.Errorf("%d lines:\n%s", lines, r.out)
	}
	if r := s.want(0, []string{"ls", "orders:*", "--kind", "fair"}, "orders:2"); strings.Contains(r.out, "orders:1") {
		t.Errorf("only fair:\n%s", r.out)
	}
	list := fromJSON[[]name](t, s.want(0, []string{"ls", "--json", "orders:1"}))
	if len(list) != 1 || list[0].Kind != "mutex" || list[0].Token != held.Token() || len(list[0].Holders) != 1 || len(list[0].Queue) != 1 {
		t.Fatalf("as JSON: %+v", list)
	}
	h, q := list[0].Holders[0], list[0].Queue[0]
	if h.Client != a.ID() || h.Label != "web-1" || h.HeldFor == nil || *h.HeldFor > 60_000 || h.LeaseLeft < 1 || q.Label != "web-2" || !q.Alive {
		t.Errorf("holder %+v, waiter %+v", h, q)
	}
	odd := fromJSON[[]name](t, s.want(0, []string{"ls", "--json", "odd*"}))
	if len(odd) != 1 || odd[0].Bytes != "b2RkIP8gbmFtZQ==" {
		t.Errorf("a name that is not UTF-8: %+v", odd)
	}
	s.want(2, []string{"ls", "--kind", "list"}, "--kind")
	s.want(2, []string{"ls", "a", "b"}, "See")
	s.want(1, []string{"ls", "--redis", "127.0.0.1:1"}, "cannot reach redis://127.0.0.1:1", "nothing listens there")
}

func TestInspect(t *testing.T) {
	s := newSite(t)
	s.want(3, []string{"inspect", "x"}, "nobody holds it")
	a, b := s.client("web-1"), s.client("web-2")
	s.lock(a.Mutex("x"))
	h, err := a.Semaphore("x", 3).Acquire(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Release(t.Context()) }()
	s.lock(a.RWLock("x"))
	s.wait(b, b.RWLock("x"), holdfast.Entry{Kind: "rw", Name: "x"})

	s.want(0, []string{"inspect", "x"}, "mutex x: 1 holder, 0 waiting", "rw x: 1 holder, 1 waiting", "sem x", "write", "web-1/", "web-2/", "DEPTH")
	if r := s.want(0, []string{"inspect", "x", "--kind", "sem"}, "sem x"); strings.Contains(r.out, "mutex") {
		t.Errorf("only sem:\n%s", r.out)
	}
	list := fromJSON[[]name](t, s.want(0, []string{"inspect", "x", "--json"}))
	if len(list) != 3 || list[2].Kind != "sem" || list[2].Holders[0].Weight != 2 {
		t.Errorf("as JSON: %+v", list)
	}
	s.want(2, []string{"inspect"}, "See")
}

func TestReleaseForce(t *testing.T) {
	s := newSite(t)
	a, b := s.client("web-1"), s.client("web-2")
	held := s.lock(a.Mutex("x"))
	s.lock(b.Mutex("other"))
	s.wait(a, a.Mutex("other"), mutex("other")) // so that it listens, and is told at once

	s.want(2, []string{"release", "x"}, "--force")
	s.want(3, []string{"release", "--force", "nothing"}, "nobody holds it")
	for _, answer := range []string{"", "n\n", "no\n", "x\n"} {
		r := s.runWith(answer, "release", "--force", "x")
		s.check(r, []string{"release", "answered", answer}, 3, "web-1/", "[y/N]", "Nothing was released")
	}
	if !held.Valid() {
		t.Fatal("it was released although nobody said yes")
	}
	s.check(s.runWith("y\n", "release", "--force", "x"), []string{"release"}, 0, "Released mutex x from 1 holder")
	select {
	case <-held.Done():
	case <-t.Context().Done():
	}
	s.lock(a.Mutex("x"))
	s.lock(a.FairLock("x"))
	s.want(2, []string{"release", "--force", "--yes", "x"}, "mutex and as fair", "--kind")
	r := s.want(0, []string{"release", "--force", "--yes", "--kind", "fair", "--json", "x"})
	if got := fromJSON[struct{ Released name }](t, r).Released; got.Kind != "fair" || len(got.Holders) != 1 {
		t.Errorf("as JSON: %+v", got)
	}
	if !s.inspect(b, mutex("x")).Held() || s.inspect(b, holdfast.Entry{Kind: "fair", Name: "x"}).Held() {
		t.Error("the wrong kind was released")
	}
}
