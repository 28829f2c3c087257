// Package turnstile is where acquisitions wait. A hall has a turnstile for each name in use; a turnstile knows
// who waits for its name and who holds it here, asks the server for them, polls, and takes in the grants that
// the server pushes. docs/protocol.md states the rules; comments name them as c1 to c12.
package turnstile

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/hold"
	"github.com/holdfast-go/holdfast/internal/scripts"
	"github.com/holdfast-go/holdfast/internal/tenure"
	"github.com/holdfast-go/holdfast/pubsub"
	"github.com/holdfast-go/holdfast/watchdog"
)

// Defaults of the protocol's times.
const (
	DefaultWindow = 3 * time.Second // for which a waiting client counts as alive
	DefaultClaim  = 3 * time.Second // how long a pushed grant lasts
	tomb          = 30 * time.Second
	// foreground is how long a Release keeps its caller.
	foreground = 3 * time.Second
	// grace is what Close gives the releases when running Do functions used up its context.
	grace = 500 * time.Millisecond
	// silence is how long an attempt must have been without an answer for an ended wait to call Redis unavailable.
	silence = 200 * time.Millisecond
	// settle is how long the undo of a cancelled wait gives the answers that are still on their way.
	settle = 300 * time.Millisecond
	// patience is how long an attempt is waited for before another goes beside it.
	patience = time.Second
	// maxInflight is how many attempts of one owner may be without an answer: a dead connection must not pile them up.
	maxInflight = 5
	// maxBackoff is the longest pause between attempts while Redis fails.
	maxBackoff = time.Second
	minBackoff = 50 * time.Millisecond
	// maxBatch is how many acquires leave in one write.
	maxBatch = 100
	// maxUndos bounds the undos at work: beyond it (a long outage) the lease bounds what is left behind.
	maxUndos = 10_000
)

// Config is what a hall needs.
type Config struct {
	Caller   *scripts.Caller
	Inbox    *pubsub.Inbox // nil: waiting is by polling alone
	Watchdog *watchdog.Watchdog
	Client   string // client id
	Logger   *slog.Logger
	Observer *hold.Observer // may be nil
	Window   time.Duration
	Claim    time.Duration
	Stacks   bool // record where holds are taken, for tests
}

// Hall is the turnstiles of one client. Safe for concurrent use.
type Hall struct {
	cfg    Config
	log    *quietLog
	last   atomic.Uint64 // number of the last owner
	shards [64]shard
	seed   maphash.Seed
	owners [64]register // by number

	idle        sync.Pool // turnstiles without a name, for the next ones
	waiters     sync.Pool // likewise, with their channels, which are empty
	timers      sync.Pool // that are stopped
	rescuers    sync.Pool
	letterboxes sync.Pool

	crew  *crew // every goroutine of the hall, and every call that is on its way
	undos atomic.Int64
	doing *crew // running Do functions
	calls *crew // acquisitions under way

	open   context.Context // ends when Close begins: no new calls
	shut   context.CancelFunc
	ctx    context.Context // ends when Close is done: nothing is sent any more
	end    context.CancelFunc
	closed sync.Once
	done   chan struct{} // closed when Close is done
}

// shard is a part of the turnstiles, by name.
type shard struct {
	mu         sync.Mutex
	turnstiles map[string]*turnstile
}

// register is a part of the owners, by number: of those whose grant may be pushed, and of those who hold.
type register struct {
	mu     sync.Mutex
	owners map[uint64]*owner
}

func (h *Hall) register(n uint64) *register { return &h.owners[n%uint64(len(h.owners))] }

// enroll makes o known, unless one with its number is.
func (h *Hall) enroll(o *owner) bool {
	r := h.register(o.n)
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.owners[o.n]; known {
		return false
	}
	r.owners[o.n] = o
	return true
}

func (h *Hall) owner(n uint64) *owner {
	r := h.register(n)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.owners[n]
}

// everybody lists the owners.
func (h *Hall) everybody() []*owner {
	var os []*owner
	for i := range h.owners {
		r := &h.owners[i]
		r.mu.Lock()
		for _, o := range r.owners {
			os = append(os, o)
		}
		r.mu.Unlock()
	}
	return os
}

// NewHall returns an empty hall. SetInbox may follow once.
func NewHall(cfg Config) *Hall {
	h := &Hall{cfg: cfg, log: newQuietLog(cfg.Logger), seed: maphash.MakeSeed(), crew: newCrew(), doing: newCrew(), calls: newCrew()}
	h.letterboxes.New = func() any { return newLetterbox() }
	h.rescuers.New = func() any { return newRescuer() }
	h.idle.New = func() any { return &turnstile{hall: h} }
	h.waiters.New = func() any { return &waiter{ready: make(chan error, 1)} }
	h.timers.New = func() any {
		t := time.NewTimer(time.Hour)
		t.Stop()
		return t
	}
	h.done = make(chan struct{})
	h.open, h.shut = context.WithCancel(context.Background())
	h.ctx, h.end = context.WithCancel(context.Background())
	for i := range h.shards {
		h.shards[i].turnstiles = make(map[string]*turnstile)
	}
	for i := range h.owners {
		h.owners[i].owners = make(map[uint64]*owner)
	}
	return h
}

// SetInbox tells where pushed grants come from; before the first use.
func (h *Hall) SetInbox(in *pubsub.Inbox) { h.cfg.Inbox = in }

// SetWatchdog tells who keeps the tenures alive; before the first use.
func (h *Hall) SetWatchdog(w *watchdog.Watchdog) { h.cfg.Watchdog = w }

// Warn logs, at most once in ten seconds for each message.
func (h *Hall) Warn(msg string, attrs ...any) { h.log.warn(msg, attrs...) }

// poll is the time between two polls of a name.
func (h *Hall) poll() time.Duration { return h.cfg.Window / 3 }

func (h *Hall) shard(key string) *shard {
	return &h.shards[maphash.String(h.seed, key)%uint64(len(h.shards))]
}

// enter returns the key's turnstile, locked, and keeps it until leave.
func (h *Hall) enter(key string) *turnstile {
	s := h.shard(key)
	s.mu.Lock()
	t := s.turnstiles[key]
	if t == nil {
		t = h.idle.Get().(*turnstile)
		t.mu.Lock() // its timer may just fire
		t.key = key
		t.mu.Unlock()
		s.turnstiles[key] = t
	}
	t.users.Add(1)
	s.mu.Unlock()
	t.mu.Lock()
	return t
}

// leave forgets the turnstile if nobody uses it any more.
func (h *Hall) leave(t *turnstile) {
	if t.users.Add(-1) > 0 {
		return
	}
	s := h.shard(t.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.users.Load() > 0 || s.turnstiles[t.key] != t {
		return
	}
	delete(s.turnstiles, t.key)
	if !t.mu.TryLock() {
		return // its timer fires just now, and finds nothing to do
	}
	t.turns = turns{known: t.known.forget()}
	t.mu.Unlock()
	h.idle.Put(t)
}

// all returns the turnstiles in use, each kept until leave.
func (h *Hall) all() []*turnstile {
	var ts []*turnstile
	for i := range h.shards {
		s := &h.shards[i]
		s.mu.Lock()
		for _, t := range s.turnstiles {
			t.users.Add(1)
			ts = append(ts, t)
		}
		s.mu.Unlock()
	}
	return ts
}

// newOwner returns a fresh identity at the server, never used before (c1).
func (h *Hall) newOwner(t *turnstile, w *waiter) *owner {
	n := h.last.Add(1)
	o := &owner{turn: t, req: w.req, waiter: w, n: n, try: w.try}
	h.enroll(o)
	t.users.Add(1)
	w.owner, w.asked = o, asked{}
	return o
}

// forget drops an owner of whom nothing can come any more.
func (h *Hall) forget(o *owner) {
	r := h.register(o.n)
	r.mu.Lock()
	_, known := r.owners[o.n]
	delete(r.owners, o.n)
	r.mu.Unlock()
	if known {
		h.leave(o.turn)
	}
}

// Subscribed is called by the inbox after every (re)subscription. Grants may have been missed, so every waiter asks,
// also those whose answer is on its way: it may have run before the subscription stood.
func (h *Hall) Subscribed() {
	now := tenure.Lately()
	for _, t := range h.all() {
		t.mu.Lock()
		t.pollAll(now)
		t.mu.Unlock()
		h.leave(t)
	}
}

// Message is called by the inbox with every message. What is not understood is ignored: anybody may publish.
func (h *Hall) Message(payload string) {
	m, ok := parseMessage(payload)
	if !ok || m.client != h.cfg.Client {
		return
	}
	o := h.owner(m.n)
	if o == nil {
		if !m.revoked {
			h.ghost(m.key, m.n)
		}
		return
	}
	if m.revoked {
		h.revoked(o)
		return
	}
	o.turn.mu.Lock()
	defer o.turn.mu.Unlock()
	o.pushed(m.grant)
}

// errForced is how a hold ends that was freed by force.
var errForced = fmt.Errorf("%w: freed by force", tenure.ErrLost)

// revoked ends a hold that was freed by force.
func (h *Hall) revoked(o *owner) {
	if t := o.tenancy(); t != nil {
		t.End(errForced)
	}
}

// Close refuses new calls, wakes the waiters with ErrClosed, waits for running Do functions until ctx ends, then
// ends and releases all holds and waits for every goroutine, at most until ctx ends (or half a second later, if
// the Do functions used it up). Later calls only wait for the first, at most until their ctx ends.
func (h *Hall) Close(ctx context.Context) (err error) {
	first := false
	h.closed.Do(func() { first = true })
	if !first {
		select {
		case <-h.done:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("holdfast: close: another Close is at work: %w", endOf(ctx))
		}
	}
	defer close(h.done)
	h.shut()
	running := h.doing.wait(ctx)
	if running == nil {
		running = h.calls.wait(ctx)
	}
	if running != nil { // they used up ctx: the releases get a moment of their own
		brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		ctx = brief
		err = fmt.Errorf("holdfast: close: Do functions run on without their holds: %w", running)
	}
	for _, o := range h.everybody() {
		if t := o.tenancy(); t != nil {
			t.End(tenure.ErrClosed)
			h.crew.Go(o.lost) // also of one that was just lost, and not yet cleaned up after
		}
	}
	if left := h.crew.wait(ctx); left != nil {
		err = errors.Join(err, fmt.Errorf("holdfast: close: not everything could be released in time, leases will end it: %w", left))
	}
	h.end()
	if h.cfg.Watchdog != nil {
		h.cfg.Watchdog.Close(ctx)
	}
	if h.cfg.Inbox != nil {
		h.cfg.Inbox.Close(ctx)
	}
	h.cfg.Caller.Close(ctx)
	return err
}

// listening reports whether grants are pushed, as far as is known.
func (h *Hall) listening() bool { return h.cfg.Inbox != nil && h.cfg.Inbox.Up() }

func (h *Hall) isClosing() bool { return h.open.Err() != nil }

// Taken is a hold that has not been released, for tests.
type Taken struct {
	Name  string
	Stack []uintptr
}

// Taken lists the holds that have not been released.
func (h *Hall) Taken() []Taken {
	var taken []Taken
	for _, o := range h.everybody() {
		o.turn.mu.Lock()
		if o.phase == holding && o.tenure.Cause() == nil {
			t := Taken{Name: o.req.Name}
			if o.stack != nil {
				t.Stack = *o.stack
			}
			taken = append(taken, t)
		}
		o.turn.mu.Unlock()
	}
	return taken
}
