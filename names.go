package holdfast

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/scripts"
	"github.com/holdfast-go/holdfast/internal/turnstile"
)

// kinds are the primitives, as they stand in the keys: "<prefix><kind>:<name>".
var kinds = []string{"mutex", "fair", "rw", "sem"}

// Entry is a name in use. Names of different kinds never collide.
type Entry struct {
	Kind string // "mutex", "fair", "rw" or "sem"
	Name string
}

// Names lists the names that are held or waited for, each once, in no order. pattern is a glob as in Redis' KEYS over
// the name alone (* ? [a-z], \ takes away a character's meaning); "" and "*" list all.
//
//	for entry, err := range client.Names(ctx, "orders:*") {
//		if err != nil {
//			return err
//		}
//		state, err := client.Inspect(ctx, entry)
//		…
//	}
//
// It walks over all keys of the server (of every master of a Cluster) by SCAN, in steps that do not block others: once
// for all names, or once for each kind with a pattern. What is taken or freed meanwhile may or may not be listed; a name
// that has just become free may be listed for half a minute, and Inspect then shows nobody.
//
// An error is the last thing that the loop sees: one that matches ctx.Err() and context.Cause(ctx) if ctx ended,
// ErrUnavailable, ErrClosed, or what Redis denies. Every range over the result is a walk of its own.
func (c *Client) Names(ctx context.Context, pattern string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		seen := make(map[Entry]bool) // SCAN may return a key twice
		for _, match := range c.matches(pattern) {
			scan := c.call.Scan(match)
			for more := true; more; {
				var keys []string
				var err error
				if keys, more, err = c.step(ctx, scan); err != nil {
					yield(Entry{}, fmt.Errorf("holdfast: names: %w", err))
					return
				}
				for _, key := range keys {
					e, ok := c.entry(key)
					if !ok || seen[e] {
						continue
					}
					seen[e] = true
					if !yield(e, nil) {
						return
					}
				}
			}
		}
	}
}

// Inspect tells who holds a name and who waits for it, as the Inspect of its primitive does.
func (c *Client) Inspect(ctx context.Context, e Entry) (State, error) {
	switch e.Kind {
	case "mutex":
		return c.Mutex(e.Name).Inspect(ctx)
	case "fair":
		return c.FairLock(e.Name).Inspect(ctx)
	case "rw":
		return c.RWLock(e.Name).Inspect(ctx)
	case "sem":
		usage, err := c.Semaphore(e.Name, 1).Inspect(ctx) // the capacity has no part in what is seen
		return usage.State, err
	default:
		return State{}, fmt.Errorf("lock %q: %w: %q is no kind", e.Name, ErrInvalid, e.Kind)
	}
}

// matches returns globs over keys. Redis' globs have no "one of these words", so that a pattern needs one for each kind.
func (c *Client) matches(pattern string) []string {
	if pattern == "" || pattern == "*" {
		return []string{escape(c.cfg.Prefix) + "*"}
	}
	var globs []string
	for _, kind := range kinds {
		globs = append(globs, escape(c.call.Key(kind, ""))+pattern)
	}
	return globs
}

var escaper = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `\`, `\\`)

// escape returns the glob that matches text alone.
func escape(text string) string { return escaper.Replace(text) }

// entry takes a key apart. Keys with our prefix that are none of ours are not listed.
func (c *Client) entry(key string) (Entry, bool) {
	for _, kind := range kinds {
		if name, ok := strings.CutPrefix(key, c.call.Key(kind, "")); ok && name != "" {
			return Entry{kind, name}, true
		}
	}
	return Entry{}, false
}

// step sends one SCAN, and does not wait for its answer when ctx ends: go-redis would.
func (c *Client) step(ctx context.Context, scan *scripts.Scan) ([]string, bool, error) {
	if err := c.usable(ctx); err != nil {
		return nil, false, err
	}
	type answer struct {
		keys []string
		more bool
		err  *scripts.Failure
	}
	began := time.Now()
	done := make(chan answer, 1)
	go func() { // ends with the answer, at the latest after go-redis's timeouts
		keys, more, f := scan.Next(ctx)
		done <- answer{keys, more, f}
	}()
	select {
	case a := <-done:
		switch {
		case a.err == nil:
			return a.keys, a.more, nil
		case ctx.Err() != nil:
			return nil, false, ended(ctx)
		}
		return nil, false, a.err
	case <-ctx.Done():
		if silent := time.Since(began); silent > 200*time.Millisecond {
			return nil, false, fmt.Errorf("%w: %w: no answer for %v", ended(ctx), ErrUnavailable, silent.Round(time.Millisecond))
		}
		return nil, false, ended(ctx)
	}
}

// usable says what keeps a call from being made at all. The hall knows whether the client is closed, and looks at that
// before it looks at the context; with an ended one it sends nothing.
func (c *Client) usable(ctx context.Context) error {
	over, end := context.WithCancel(ctx)
	end()
	if _, err := c.hall.Inspect(over, &turnstile.Request{Name: "-", Key: "-"}); errors.Is(err, ErrClosed) {
		return ErrClosed
	}
	if ctx.Err() != nil {
		return ended(ctx)
	}
	return nil
}

// ended is an error that matches both ctx.Err() and context.Cause(ctx).
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
