package conformance

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/config"
)

// soon is how long what happens at once may take on a busy machine. What else could have brought it about
// (a poll of a patient client, a lease) takes at least ten times as long.
const soon = 2 * time.Second

// env is the place of one scenario: its kind, a name of its own, and what it may do there.
type env struct {
	*testing.T
	suite *suite
	kind  kind
	name  string
	raw   redis.UniversalClient // to look at the key and to damage it
}

// soon is how long what a waiter is told at once may take. Without a subscription a poll tells it.
func (e *env) soon() time.Duration {
	if e.suite.polling {
		return soon + 2*time.Second
	}
	return soon
}

// ctx returns a context that ends only when the scenario hangs, or is over.
func (e *env) ctx() context.Context {
	ctx, cancel := context.WithTimeout(e.Context(), 30*time.Second)
	e.Cleanup(cancel)
	return ctx
}

// within returns a context that ends after d.
func (e *env) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(e.Context(), d)
	e.Cleanup(cancel)
	return ctx
}

// client returns a new client: two of them are what two processes are. At the end it must be able to release
// everything.
func (e *env) client(options ...holdfast.Option) *holdfast.Client {
	e.Helper()
	return e.clientOn(e.suite.newRedis(e), options...)
}

func (e *env) clientOn(rdb redis.UniversalClient, options ...holdfast.Option) *holdfast.Client {
	e.Helper()
	all := append([]holdfast.Option{quiet}, e.suite.options...)
	c, err := holdfast.New(rdb, append(all, options...)...)
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() {
		if err := shut(c, 10*time.Second); err != nil {
			e.Error(err)
		}
	})
	return c
}

// shut closes a client within d.
func shut(c *holdfast.Client, d time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return c.Close(ctx)
}

// patient makes polls so rare that only a message can be what wakes a waiter soon. Where there are no messages
// it changes nothing.
func (e *env) patient() holdfast.Option {
	return func(c *config.Config) {
		if !c.PollOnly {
			c.Window, c.Claim = 90*time.Second, 90*time.Second
		}
	}
}

func (e *env) lock(c *holdfast.Client, options ...holdfast.LockOption) locker {
	return e.kind.lock(c, e.name, options...)
}

func (e *env) rival(c *holdfast.Client, options ...holdfast.LockOption) locker {
	return e.kind.rival(c, e.name, options...)
}

// must passes on the hold of an acquisition that has to succeed.
func (e *env) must(h *holdfast.Hold, err error) *holdfast.Hold {
	e.Helper()
	if err != nil {
		e.Fatalf("not acquired: %v", err)
	}
	return h
}

// fails checks an acquisition that has to fail with all of these errors.
func (e *env) fails(want ...error) func(*holdfast.Hold, error) {
	return func(h *holdfast.Hold, err error) {
		e.Helper()
		if h != nil {
			e.Errorf("got %v", h)
		}
		e.is(err, want...)
	}
}

// is checks an error: it matches all that are wanted, and says which lock it is about.
func (e *env) is(err error, want ...error) {
	e.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			e.Errorf("got the error %v, want %v", err, w)
		}
	}
	if err != nil && strings.Count(err.Error(), `lock "`) != 1 && len(e.name) < 200 {
		e.Errorf("the error does not name its lock once: %v", err)
	}
}

func (e *env) release(h *holdfast.Hold) {
	e.Helper()
	if err := h.Release(e.ctx()); err != nil {
		e.Errorf("release: %v", err)
	}
}

// alive checks that a hold lasts, by everything that tells.
func (e *env) alive(h *holdfast.Hold) {
	e.Helper()
	if err := h.Err(); err != nil || !h.Valid() || closed(h.Done()) {
		e.Errorf("the hold does not last: valid %v, done %v, error %v", h.Valid(), closed(h.Done()), err)
	}
}

// ended waits until a hold is told of its end, and checks everything that tells.
func (e *env) ended(h *holdfast.Hold, cause error) {
	e.Helper()
	e.closes(h.Done(), "Done")
	if h.Valid() || !closed(h.Done()) {
		e.Errorf("the hold has ended: valid %v, done %v", h.Valid(), closed(h.Done()))
	}
	e.is(h.Err(), cause)
}

// endedContext waits until a hold's context has ended, and checks why.
func (e *env) endedContext(ctx context.Context, cause error) {
	e.Helper()
	e.closes(ctx.Done(), "the context")
	if !errors.Is(context.Cause(ctx), cause) || !errors.Is(ctx.Err(), context.Canceled) {
		e.Errorf("the context ended with %v, cause %v, want %v", ctx.Err(), context.Cause(ctx), cause)
	}
}

func (e *env) closes(done <-chan struct{}, what string) {
	e.Helper()
	e.closesBy(time.Now(), done, what)
}

// closesBy waits for what is to happen at an instant, or soon after.
func (e *env) closesBy(at time.Time, done <-chan struct{}, what string) {
	e.Helper()
	limit := max(time.Until(at), 0) + soon
	select {
	case <-done:
	case <-time.After(limit):
		e.Fatalf("not closed within %v: %s", limit, what)
	}
}

// passes waits until an instant is over.
func passes(at time.Time) { <-time.After(time.Until(at)) }

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// eventually waits for a condition.
func (e *env) eventually(what string, condition func() bool) {
	e.Helper()
	for end := time.Now().Add(e.soon()); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			e.Fatalf("not within %v: %s", e.soon(), what)
		}
	}
}

func (e *env) state(l locker) holdfast.State {
	e.Helper()
	s, err := l.Inspect(e.ctx())
	if err != nil {
		e.Fatalf("inspect: %v", err)
	}
	return s
}

// queued waits until the server's queue has n tickets.
func (e *env) queued(l locker, n int) {
	e.Helper()
	e.eventually("tickets in the queue", func() bool { return len(e.state(l).Queue) == n })
}

func (e *env) key() string { return holdfast.DefaultPrefix + e.kind.prefix + ":" + e.name }

func (e *env) fields() map[string]string {
	e.Helper()
	fields, err := e.raw.HGetAll(context.Background(), e.key()).Result()
	if err != nil {
		e.Fatal(err)
	}
	return fields
}

// lose is what a flush does to the name.
func (e *env) lose() {
	e.Helper()
	if err := e.raw.Del(e.ctx(), e.key()).Err(); err != nil {
		e.Fatal(err)
	}
}

// free waits until nothing is left of the name but tombstones, which go soon and are looked after at exp, and
// until when clients count as alive.
func (e *env) free() {
	e.Helper()
	var left map[string]string
	for end := time.Now().Add(soon); ; time.Sleep(5 * time.Millisecond) {
		left = e.fields()
		maps.DeleteFunc(left, func(f, _ string) bool {
			return f == "v" || f == "seq" || f == "xt" || f == "exp" || strings.HasPrefix(f, "x:") || strings.HasPrefix(f, "c:")
		})
		if len(left) == 0 {
			break
		}
		if time.Now().After(end) {
			e.Errorf("left in the key: %v", left)
			return
		}
	}
	if ttl := e.raw.PTTL(context.Background(), e.key()).Val(); ttl > 31*time.Second || ttl == -1 {
		e.Errorf("the free key stays for %v", ttl)
	}
}

// gone checks that the free name has no key, but for tombstones: a slow machine has its requests unanswered.
func (e *env) gone() {
	e.Helper()
	if left := e.fields(); len(left) > 0 && left["xt"] == "" {
		e.Errorf("the idle name has a key: %v", left)
	}
}

// counter is a go-redis hook that counts commands.
type counter struct{ n atomic.Int64 }

func (c *counter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmd)
	}
}

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.n.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

// countedClient returns a client whose commands are counted.
func (e *env) countedClient() (*holdfast.Client, *counter) {
	e.Helper()
	rdb, n := e.suite.newRedis(e), new(counter)
	rdb.AddHook(n)
	return e.clientOn(rdb), n
}
