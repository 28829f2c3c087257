package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/hold"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

// log is what an observer was told.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *log) has(line string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.lines, line)
}

func (l *log) observer() holdfast.Observer {
	return holdfast.Observer{
		Acquiring: func(_ context.Context, k hold.Lock) { l.add("acquiring %s %s%s", k.Kind, k.Name, k.Mode()) },
		Acquired: func(_ context.Context, k hold.Lock, a hold.Acquisition) {
			if a.Token == 0 || a.Waited <= 0 {
				l.add("token %d after %v", a.Token, a.Waited)
			}
			l.add("acquired %s %s%s %v", k.Kind, k.Name, k.Mode(), a.How)
		},
		NotAcquired: func(_ context.Context, k hold.Lock, _ time.Duration, err error) {
			l.add("not acquired %s %v", k.Name, errors.Is(err, holdfast.ErrNotAcquired))
		},
		Released: func(_ context.Context, k hold.Lock, held time.Duration, err error) {
			l.add("released %s %v %v", k.Name, held >= 0, err)
		},
		Lost: func(k hold.Lock, _ time.Duration, cause error) {
			l.add("lost %s %v", k.Name, errors.Is(cause, holdfast.ErrLost))
		},
		Renewed:    func(k hold.Lock, err error) { l.add("renewed %s %v", k.Name, err) },
		Subscribed: func(up bool) { l.add("subscribed %v", up) },
	}
}

func (l *log) wait(t *testing.T, line string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !l.has(line); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			l.mu.Lock()
			defer l.mu.Unlock()
			t.Fatalf("not told %q, but\n%s", line, strings.Join(l.lines, "\n"))
		}
	}
}

func TestAnObserverIsToldWhatHappens(t *testing.T) {
	server, l, ctx := holdfasttest.NewServer(t), new(log), t.Context()
	mine, err := holdfast.New(server.Redis(), holdfast.Observe(l.observer()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mine.Close(context.Background()) }()
	other, err := holdfast.New(server.Redis())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close(context.Background()) }()

	m := mine.Mutex("m", holdfast.Lease(300*time.Millisecond))
	held, err := m.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	l.wait(t, "acquiring mutex m")
	l.wait(t, "acquired mutex m at once")
	l.wait(t, "renewed m <nil>")
	inner, err := m.Lock(held.Context(ctx))
	if err != nil {
		t.Fatal(err)
	}
	l.wait(t, "acquired mutex m reentered")
	_ = inner.Release(ctx)
	go func() {
		if next, err := m.Lock(ctx); err == nil {
			_ = next.Release(ctx)
		}
	}()
	time.Sleep(20 * time.Millisecond) // the other goroutine may come a little late: then it is not passed, and tried again
	for !l.has("acquired mutex m passed") {
		again := make(chan struct{})
		_ = held.Release(ctx)
		if held, err = m.Lock(ctx); err != nil {
			t.Fatal(err)
		}
		go func() {
			close(again)
			if next, err := m.Lock(ctx); err == nil {
				_ = next.Release(ctx)
			}
		}()
		<-again
		time.Sleep(5 * time.Millisecond)
	}
	l.wait(t, "released m true <nil>")
	if err := other.Mutex("m").ForceRelease(ctx); err != nil {
		t.Fatal(err)
	}
	l.wait(t, "lost m true")

	theirs, err := other.RWLock("rw").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mine.RWLock("rw").TryRLock(ctx); !errors.Is(err, holdfast.ErrNotAcquired) {
		t.Fatal(err)
	}
	l.wait(t, "not acquired rw true")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = mine.RWLock("rw").RDo(ctx, func(context.Context) error { return nil })
	}()
	l.wait(t, "subscribed true")
	for state, err := mine.RWLock("rw").Inspect(ctx); len(state.Queue) == 0; state, err = mine.RWLock("rw").Inspect(ctx) {
		if err != nil {
			t.Fatal(err)
		}
	}
	_ = theirs.Release(ctx)
	<-done
	if !l.has("acquired rw rwread pushed") && !l.has("acquired rw rwread polled") {
		t.Errorf("how the wait ended was not told: %v", l.lines)
	}
}

func TestAClientIsKnownByHostAndProcess(t *testing.T) {
	server, ctx := holdfasttest.NewServer(t), t.Context()
	client, err := holdfast.New(server.Redis())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close(context.Background()) }()
	held, err := client.Mutex("m").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Release(ctx) }()
	state, err := client.Mutex("m").Inspect(ctx)
	if err != nil || len(state.Holders) != 1 || !strings.Contains(state.Holders[0].Label, "-") || len(state.Holders[0].Label) > 19 {
		t.Errorf("known as %+v, %v", state.Holders, err)
	}
}

func TestAnObserverIsToldOnceOfEachReleaseAndOfALossThatItFinds(t *testing.T) {
	server, l, ctx := holdfasttest.NewServer(t), new(log), t.Context()
	client, err := holdfast.New(server.Redis(), holdfast.Observe(l.observer()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close(context.Background()) }()
	held, err := client.Mutex("m").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Redis().FlushAll(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := held.Release(ctx); err == nil {
			t.Error("a hold that was flushed away is released")
		}
	}
	lost, released := 0, 0
	for _, line := range l.lines {
		switch {
		case line == "lost m true":
			lost++
		case strings.HasPrefix(line, "released m true") && strings.Contains(line, holdfast.ErrLost.Error()):
			released++
		}
	}
	if lost != 1 || released != 1 {
		t.Errorf("%d losses, %d releases: %q", lost, released, l.lines)
	}
}
