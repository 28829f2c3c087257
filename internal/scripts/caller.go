package scripts

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/tenure"
)

// maxRead is the longest that a socket may wait for a reply. Callers do not wait for so long: they ask again beside
// it. But a socket that is never given up would be lost to a half-open connection.
const maxRead = 10 * time.Second

// briefRead is the longest ReadTimeout with which callers send by themselves, for they cannot be called back meanwhile. It
// is go-redis's default.
const briefRead = 5 * time.Second

// Caller sends scripts. Safe for concurrent use.
type Caller struct {
	rdb     redis.UniversalClient
	prefix  string       // of keys and channels
	inboxes string       // prefix of the inbox channels
	brief   bool         // a reply is waited for so briefly that a caller may do it himself
	flying  atomic.Int64 // calls that are waited for
	trip    trip
	warm    atomic.Bool // a call was answered
	apart   atomic.Bool // a script must have one key
	senders sync.Map    // node → *sender
	quit    chan struct{}

	mu      sync.Mutex // guards what follows, against workers that start during Close
	closed  bool
	workers sync.WaitGroup
}

// NewCaller returns a Caller on rdb. Keys and channels start with prefix.
func NewCaller(rdb redis.UniversalClient, prefix string) *Caller {
	c := &Caller{rdb: rdb, prefix: prefix, inboxes: prefix + "inbox:", quit: make(chan struct{})}
	if single, ok := rdb.(*redis.Client); ok {
		t := single.Options().ReadTimeout
		c.brief = t > 0 && t <= briefRead
		if t <= 0 || t > maxRead {
			c.rdb = single.WithTimeout(maxRead) // shares the pool, but not the hooks
		}
	}
	return c
}

// Key returns the key of a name of the given kind.
func (c *Caller) Key(kind, name string) string { return c.prefix + kind + ":" + name }

// Name returns the name that a key stands for, "" if it is not one of this prefix.
func (c *Caller) Name(key string) string {
	rest, ours := strings.CutPrefix(key, c.prefix)
	_, name, _ := strings.Cut(rest, ":")
	if !ours {
		return ""
	}
	return name
}

// Inbox returns the channel on which a client gets its grants.
func (c *Caller) Inbox(client string) string { return c.inboxes + client }

// run makes one attempt. EVALSHA becomes EVAL where the server does not know the script (yet, or any more).
func (c *Caller) run(ctx context.Context, s *call) (string, *Failure) {
	c.flying.Add(1)
	began := time.Now()
	defer func() {
		c.flying.Add(-1)
		c.trip.took(time.Since(began))
	}()
	err := c.rdb.Process(ctx, s.prepare(ctx, false))
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		err = c.rdb.Process(ctx, s.prepare(ctx, true))
	}
	if err != nil {
		return "", c.failed(ctx, err)
	}
	return s.command.Val(), nil
}

// runAll makes one attempt for each call, in one write. Calls to the same key run in the given order.
func (c *Caller) runAll(ctx context.Context, calls []*call) ([]string, []*Failure) {
	return c.pipeline(ctx, c.rdb, calls, nil)
}

// Acks says how many replicas must acknowledge a write, and for how long that is waited for.
type Acks struct {
	Replicas int
	Timeout  time.Duration
}

// runAcked is runAll for keys that live on one node, followed by a WAIT on the same connection: WAIT counts for that
// alone. short is not nil if fewer replicas than asked acknowledged.
func (c *Caller) runAcked(ctx context.Context, calls []*call, acks Acks) (replies []string, failures []*Failure, short *Failure) {
	node := c.rdb
	if cluster, ok := c.rdb.(*redis.ClusterClient); ok {
		master, err := cluster.MasterForKey(ctx, calls[0].key)
		if err != nil {
			failures = make([]*Failure, len(calls))
			for i := range failures {
				failures[i] = c.failed(ctx, err)
			}
			return make([]string, len(calls)), failures, nil
		}
		node = master
	}
	wait := redis.NewIntCmd(ctx, "wait", acks.Replicas, millis(acks.Timeout))
	replies, failures = c.pipeline(ctx, node, calls, func(pipe redis.Pipeliner) {
		_ = pipe.Process(ctx, wait)
	})
	switch n, err := wait.Result(); {
	case err != nil:
		short = &Failure{Unknown: true, err: fmt.Errorf("%w: WAIT: %w", tenure.ErrUnavailable, err)}
	case int(n) < acks.Replicas:
		short = &Failure{Unknown: true, acks: int(n), err: fmt.Errorf("%w: %d of %d replicas acknowledged within %v",
			tenure.ErrUnavailable, n, acks.Replicas, acks.Timeout)}
	}
	return replies, failures, short
}

// pipeline makes one attempt for each call in one write, and adds the last commands to each.
func (c *Caller) pipeline(ctx context.Context, rdb redis.UniversalClient, calls []*call, last func(redis.Pipeliner)) ([]string, []*Failure) {
	replies, failures := make([]string, len(calls)), make([]*Failure, len(calls))
	todo := make([]int, len(calls))
	for i := range calls {
		todo[i] = i
	}
	for _, whole := range []bool{false, true} {
		pipe := rdb.Pipeline()
		for _, i := range todo {
			_ = pipe.Process(ctx, calls[i].prepare(ctx, whole))
		}
		if last != nil {
			last(pipe)
		}
		_, err := pipe.Exec(ctx)
		var unknown []int // to the server's script cache
		for _, i := range todo {
			cmd := &calls[i].command
			switch e := cmd.Err(); {
			case e == nil && (err == nil || cmd.Val() != ""):
				replies[i], failures[i] = cmd.Val(), nil
			case e == nil: // the pipeline failed before this command was answered
				failures[i] = c.failed(ctx, err)
			default:
				failures[i] = c.failed(ctx, e)
				if redis.HasErrorPrefix(e, "NOSCRIPT") {
					unknown = append(unknown, i)
				}
			}
		}
		if todo = unknown; len(todo) == 0 {
			break
		}
	}
	return replies, failures
}

// failed sorts an error, and has a Cluster client look for the new master after the network failed.
func (c *Caller) failed(ctx context.Context, err error) *Failure {
	f := NewFailure(err)
	if _, single := c.rdb.(*redis.Client); single && redis.HasErrorPrefix(err, "MOVED") {
		f.Transient = false // it will say so for ever
		f.err = fmt.Errorf("%w (this is a node of a Cluster: use redis.NewClusterClient)", f.err)
	}
	if cluster, ok := c.rdb.(*redis.ClusterClient); ok && f.Transient {
		cluster.ReloadState(ctx)
	}
	return f
}

func millis(d time.Duration) int64 { return d.Milliseconds() }

// Node names the server that a key lives on: its address on a Cluster, else nothing.
func (c *Caller) Node(ctx context.Context, key string) string {
	if cluster, ok := c.rdb.(*redis.ClusterClient); ok {
		if node, err := cluster.MasterForKey(ctx, key); err == nil {
			return node.Options().Addr
		}
	}
	return ""
}
