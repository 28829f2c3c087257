package scripts

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/tenure"
)

// maxRead is the longest that a socket may wait for a reply. Callers do not wait for so long: they ask again beside
// it. But a socket that is never given up would be lost to a half-open connection.
const maxRead = 10 * time.Second

// Caller sends scripts. Safe for concurrent use.
type Caller struct {
	rdb    redis.UniversalClient
	prefix string // of keys and channels
}

// NewCaller returns a Caller on rdb. Keys and channels start with prefix.
func NewCaller(rdb redis.UniversalClient, prefix string) *Caller {
	if c, ok := rdb.(*redis.Client); ok {
		if t := c.Options().ReadTimeout; t <= 0 || t > maxRead {
			rdb = c.WithTimeout(maxRead) // shares the pool, but not the hooks
		}
	}
	return &Caller{rdb: rdb, prefix: prefix}
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
func (c *Caller) Inbox(client string) string { return c.inboxes() + client }

func (c *Caller) inboxes() string { return c.prefix + "inbox:" }

// call is a script with its arguments.
type call struct {
	script *script
	key    string
	args   []any
}

// once is a command that go-redis sends once: a script whose reply was lost may have run, and what follows
// from that is ours to decide. The replies of the scripts are numbers in a string.
type once struct{ *redis.StringCmd }

// NoRetry keeps go-redis from sending the command again.
func (once) NoRetry() bool { return true }

func (c *call) command(ctx context.Context, verb, text string) once {
	args := make([]any, 0, 4+len(c.args))
	args = append(args, verb, text, 1, c.key)
	return once{redis.NewStringCmd(ctx, append(args, c.args...)...)}
}

// run makes one attempt. EVALSHA becomes EVAL where the server does not know the script (yet, or any more).
func (c *Caller) run(ctx context.Context, s *call) (string, *Failure) {
	cmd := s.command(ctx, "evalsha", s.script.sha)
	err := c.rdb.Process(ctx, cmd)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = s.command(ctx, "eval", s.script.text)
		err = c.rdb.Process(ctx, cmd)
	}
	if err != nil {
		return "", c.failed(ctx, err)
	}
	return cmd.Val(), nil
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
	for _, verb := range []string{"evalsha", "eval"} {
		pipe := rdb.Pipeline()
		cmds := make([]once, len(todo))
		for k, i := range todo {
			text := calls[i].script.sha
			if verb == "eval" {
				text = calls[i].script.text
			}
			cmds[k] = calls[i].command(ctx, verb, text)
			_ = pipe.Process(ctx, cmds[k])
		}
		if last != nil {
			last(pipe)
		}
		_, err := pipe.Exec(ctx)
		var unknown []int // to the server's script cache
		for k, i := range todo {
			switch e := cmds[k].Err(); {
			case e == nil && (err == nil || len(cmds[k].Val()) > 0):
				replies[i], failures[i] = cmds[k].Val(), nil
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
