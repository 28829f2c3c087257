package holdfast

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"reflect"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/fairlock"
	"github.com/holdfast-go/holdfast/hold"
	"github.com/holdfast-go/holdfast/internal/config"
	"github.com/holdfast-go/holdfast/internal/scripts"
	"github.com/holdfast-go/holdfast/internal/turnstile"
	"github.com/holdfast-go/holdfast/mutex"
	"github.com/holdfast-go/holdfast/pubsub"
	"github.com/holdfast-go/holdfast/rwlock"
	"github.com/holdfast-go/holdfast/semaphore"
	"github.com/holdfast-go/holdfast/watchdog"
)

// Hold is one acquisition; see package hold.
type Hold = hold.Hold

// State is what Inspect tells.
type State = hold.State

// Observer is told what a client does; see package hold.
type Observer = hold.Observer

// Lock tells an Observer which lock something happened to; see package hold.
type Lock = hold.Lock

// Acquisition tells an Observer how a hold was acquired; see package hold.
type Acquisition = hold.Acquisition

// Mutex is a reentrant mutual exclusion lock; see package mutex.
type Mutex = mutex.Mutex

// FairLock is a reentrant lock in strict order of arrival; see package fairlock.
type FairLock = fairlock.FairLock

// RWLock is a reentrant lock for many readers or one writer; see package rwlock.
type RWLock = rwlock.RWLock

// Semaphore is a counting semaphore; see package semaphore.
type Semaphore = semaphore.Semaphore

// Client hands out the primitives. It is safe for concurrent use, meant to be made once per process, and
// owns what is acquired through it: other clients, also on the same Redis client, are strangers to it.
type Client struct {
	cfg  config.Config
	id   string
	call *scripts.Caller
	hall *turnstile.Hall

	settings *hold.Settings // without options
}

// New returns a client on a go-redis client: standalone, Sentinel or Cluster; on a Ring waiting is by polling
// alone. New does no I/O. It returns ErrInvalid for a bad option.
//
// The go-redis client stays the caller's: holdfast does not close it, and sends its own commands regardless of
// its MaxRetries.
func New(rdb redis.UniversalClient, options ...Option) (*Client, error) {
	if rdb == nil || reflect.ValueOf(rdb).Kind() == reflect.Pointer && reflect.ValueOf(rdb).IsNil() {
		return nil, fmt.Errorf("holdfast: %w: the redis client is nil", ErrInvalid)
	}
	cfg := config.Config{
		Prefix: DefaultPrefix, Label: defaultLabel(), Logger: slog.Default(), Window: turnstile.DefaultWindow, Claim: turnstile.DefaultClaim,
	}
	for _, o := range options {
		if o != nil {
			o(&cfg)
		}
	}
	if cfg.Err != nil {
		return nil, fmt.Errorf("holdfast: %w", cfg.Err)
	}
	if _, ok := rdb.(*redis.Ring); ok {
		cfg.PollOnly = true // a script publishes on its own shard, which need not be where the inbox listens
	}
	c := &Client{cfg: cfg, id: newID(cfg.Label), call: scripts.NewCaller(rdb, cfg.Prefix)}
	defaults, _ := hold.Resolve(cfg.Defaults...)
	c.settings = &defaults
	c.hall = turnstile.NewHall(turnstile.Config{
		Caller: c.call, Client: c.id, Logger: cfg.Logger, Observer: cfg.Observer, Window: cfg.Window, Claim: cfg.Claim, Stacks: cfg.Stacks,
	})
	c.hall.SetWatchdog(watchdog.New(c.call, c.hall.Warn, c.hall.Renewed))
	var failed func()
	if cluster, ok := rdb.(*redis.ClusterClient); ok {
		failed = func() { cluster.ReloadState(context.Background()) }
	}
	if !cfg.PollOnly {
		c.hall.SetInbox(pubsub.New(pubsub.Config{
			Client: rdb, Channel: c.call.Inbox(c.id), Logger: cfg.Logger, Ping: cfg.Ping,
			Subscribed: c.hall.Subscribed, Message: c.hall.Message, Failed: failed, Changed: c.hall.Listening,
		}))
	}
	if cfg.Hall != nil {
		cfg.Hall(c.hall)
	}
	return c, nil
}

// newID returns a random identity: a process that starts anew never inherits what an earlier one held.
func newID(label string) string {
	u := uuid.New()
	id := base64.RawURLEncoding.EncodeToString(u[:])
	if label != "" {
		id += "@" + label
	}
	return id
}

// ID returns the client's identity, as Inspect shows it.
func (c *Client) ID() string { return c.id }

// Mutex returns the mutex of a name, 1 to 1,024 bytes. It never fails and sends nothing: what is wrong with
// the name or an option is reported by the first call.
func (c *Client) Mutex(name string, options ...LockOption) *Mutex {
	settings, err := c.resolve(options)
	return mutex.New(c.hall, name, c.call.Key("mutex", name), settings, err)
}

// FairLock returns the fair lock of a name, as Mutex does. Names of different kinds never collide.
func (c *Client) FairLock(name string, options ...LockOption) *FairLock {
	settings, err := c.resolve(options)
	return fairlock.New(c.hall, name, c.call.Key("fair", name), settings, err)
}

// RWLock returns the read-write lock of a name, as Mutex does.
func (c *Client) RWLock(name string, options ...LockOption) *RWLock {
	settings, err := c.resolve(options)
	return rwlock.New(c.hall, name, c.call.Key("rw", name), settings, err)
}

// Semaphore returns the semaphore of a name, as Mutex does. The capacity is this caller's: see Semaphore.
func (c *Client) Semaphore(name string, capacity int, options ...LockOption) *Semaphore {
	settings, err := c.resolve(options)
	return semaphore.New(c.hall, name, c.call.Key("sem", name), capacity, settings, err)
}

func (c *Client) resolve(options []LockOption) (*hold.Settings, error) {
	if len(options) == 0 {
		return c.settings, nil // Defaults were checked by New
	}
	settings, err := hold.Resolve(append(c.cfg.Defaults[:len(c.cfg.Defaults):len(c.cfg.Defaults)], options...)...)
	return &settings, err
}

// Close refuses new calls, wakes waiters with ErrClosed, waits for running Do functions until ctx ends, then
// ends all holds with ErrClosed, also those of Do functions that still run, releases them, and waits for the client's
// goroutines, at most until ctx ends, or half a second later if Do functions used it up. Use a fresh context: the one of
// a request or a signal is done by then. It returns an error if not everything was released in time; leases end what is
// left. A later Close only waits for the first.
func (c *Client) Close(ctx context.Context) error { return c.hall.Close(ctx) }

// WithoutHolds returns a context like ctx that owns nothing: acquiring with it waits like anybody, for background
// work that must not count as inside. It still ends when ctx ends, so work that outlives Do takes
// WithoutHolds(context.WithoutCancel(ctx)).
func WithoutHolds(ctx context.Context) context.Context { return hold.WithoutHolds(ctx) }
