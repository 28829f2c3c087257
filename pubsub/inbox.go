// Package pubsub keeps a client's inbox: one subscription to one channel, on which the server's scripts push
// grants. It makes waiting fast, never right: waiters poll as well.
//
// The package is there to be read; its API is outside the compatibility promise.
package pubsub

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// maxPause is the longest pause between two attempts to subscribe. After a failover it is what waiters wait for.
const maxPause = 500 * time.Millisecond

// Subscriber is the part of a go-redis client that an inbox needs.
type Subscriber interface {
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
}

// Config is what an Inbox needs to know.
type Config struct {
	Client  Subscriber
	Channel string
	// Subscribed is called after every (re)subscription: whatever was pushed before may have been missed.
	Subscribed func()
	// Message is called with every message, in order. Neither may block.
	Message func(payload string)
	// Failed is called when a subscription broke, if it is set: a Cluster client looks for the new masters then.
	Failed func()
	// Changed is called when the subscription begins to stand and when it is gone, if it is set.
	Changed func(up bool)
	Logger  *slog.Logger
	// Ping is how often a silent subscription is asked for a sign of life; by default 3 s. One that stays
	// silent for another such time is replaced: go-redis does not notice a half-open connection.
	Ping time.Duration
	// Retry is how long a subscription that Redis refuses is left alone; by default a minute.
	Retry time.Duration
}

// Inbox is the subscription. It starts with the first Open and lasts until Close, on purpose: no churn.
// Safe for concurrent use.
type Inbox struct {
	cfg   Config
	start sync.Once
	up    atomic.Bool
	wg    sync.WaitGroup
	quit  context.Context
	stop  context.CancelFunc

	mu      sync.Mutex // guards what follows
	closed  bool       // against a start that comes after Close
	current *redis.PubSub
	missed  time.Time // when a message was last missed
	renewed time.Time // when the subscription was last replaced for that
}

// New returns an inbox that has not started.
func New(cfg Config) *Inbox {
	if cfg.Ping <= 0 {
		cfg.Ping = 3 * time.Second
	}
	if cfg.Retry <= 0 {
		cfg.Retry = time.Minute
	}
	in := &Inbox{cfg: cfg}
	in.quit, in.stop = context.WithCancel(context.Background())
	return in
}

// Open makes sure that the subscription is there or on its way. It does not wait.
func (in *Inbox) Open() {
	in.start.Do(func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		if !in.closed {
			in.wg.Go(in.run)
		}
	})
}

// Up reports whether the subscription stands, as far as is known.
func (in *Inbox) Up() bool { return in.up.Load() }

func (in *Inbox) setUp(up bool) {
	if in.up.Swap(up) != up && in.cfg.Changed != nil {
		in.cfg.Changed(up)
	}
}

// Missed tells that a message which should have come did not. One may have crossed the poll that tells; after two in a
// short time the inbox subscribes anew: after a Sentinel switch go-redis goes on listening to the old master for
// seconds. It does not wait.
func (in *Inbox) Missed() {
	in.mu.Lock()
	defer in.mu.Unlock()
	now := time.Now()
	again := now.Sub(in.missed) < 3*in.cfg.Ping
	in.missed = now
	if again {
		in.renewLocked(now)
	}
}

// Renew subscribes anew: the server is not the one it was. It does not wait.
func (in *Inbox) Renew() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.renewLocked(time.Now())
}

func (in *Inbox) renewLocked(now time.Time) {
	if ps := in.current; ps != nil && !in.closed && now.Sub(in.renewed) > in.cfg.Ping {
		in.renewed = now
		in.wg.Go(func() { _ = ps.Close() }) // Receive fails now, and run goes on
	}
}

// Close ends the subscription and waits for its goroutines, at most until ctx ends.
func (in *Inbox) Close(ctx context.Context) {
	in.mu.Lock()
	in.closed = true
	in.mu.Unlock()
	in.stop()
	done := make(chan struct{})
	go func() { in.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// run subscribes, again and again, until Close.
func (in *Inbox) run() {
	pause := 50 * time.Millisecond
	refused := false
	for in.quit.Err() == nil {
		began := time.Now()
		err := in.subscribe()
		in.setUp(false)
		if in.quit.Err() != nil {
			return
		}
		wait := pause
		switch {
		case isRefusal(err):
			wait = in.cfg.Retry
			if !refused {
				refused = true
				in.cfg.Logger.Warn("holdfast: no subscription, waiting goes on by polling once a second",
					"channel", in.cfg.Channel, "error", err)
			}
		case time.Since(began) > in.cfg.Ping:
			pause = 50 * time.Millisecond
			in.cfg.Logger.Debug("holdfast: subscription replaced", "channel", in.cfg.Channel, "error", err)
		default:
			pause = min(2*pause, maxPause)
		}
		select {
		case <-in.quit.Done():
		case <-time.After(wait):
		}
	}
}

// isRefusal reports whether Redis answered, and the answer will not change soon: a missing right, an unknown
// command. What comes from the network, or from a server that starts or fails over, is no refusal.
func isRefusal(err error) bool {
	return err != nil && (redis.HasErrorPrefix(err, "NOPERM") || redis.HasErrorPrefix(err, "NOAUTH") || redis.HasErrorPrefix(err, "unknown command"))
}

// subscribe keeps one subscription until it fails, falls silent, or Close. go-redis reconnects by itself when a
// connection breaks; that shows as another subscription message.
func (in *Inbox) subscribe() error {
	ps := in.cfg.Client.Subscribe(in.quit, in.cfg.Channel)
	in.keep(ps)
	defer in.keep(nil)
	var heard atomic.Int64 // time of the last sign of life, as time since began
	began := time.Now()
	watch := make(chan struct{})
	in.wg.Go(func() {
		in.watch(ps, watch, func() time.Duration { return time.Since(began) - time.Duration(heard.Load()) })
	})
	defer close(watch)
	for failures := 0; ; {
		msg, err := ps.Receive(in.quit)
		if err != nil {
			in.setUp(false)
			if in.quit.Err() != nil {
				return err
			}
			if in.cfg.Failed != nil {
				in.cfg.Failed()
			}
			failures++
			if isRefusal(err) || failures > 3 || !sleep(in.quit, time.Duration(failures)*10*time.Millisecond) {
				return err
			}
			continue
		}
		failures = 0
		heard.Store(int64(time.Since(began)))
		switch m := msg.(type) {
		case *redis.Subscription:
			in.setUp(true)
			in.cfg.Subscribed()
		case *redis.Message:
			in.cfg.Message(m.Payload)
		}
	}
}

func (in *Inbox) keep(ps *redis.PubSub) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.current = ps
}

// watch asks a silent subscription for a sign of life and closes it when none comes, or at the end.
func (in *Inbox) watch(ps *redis.PubSub, end <-chan struct{}, silent func() time.Duration) {
	defer func() { _ = ps.Close() }()
	tick := time.NewTicker(in.cfg.Ping)
	defer tick.Stop()
	for {
		select {
		case <-end:
			return
		case <-in.quit.Done():
			return
		case <-tick.C:
			if silent() >= 2*in.cfg.Ping {
				return // half-open: Receive fails now, and run subscribes anew
			}
			if silent() >= in.cfg.Ping/2 {
				_ = ps.Ping(in.quit)
			}
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
