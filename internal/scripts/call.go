package scripts

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

// call is one run of a script. It keeps what its command needs in one piece, and is used again: most of what an
// uncontended acquire costs its client would be these allocations. Arguments are pointers into it, which go-redis writes
// like what they point to.
type call struct {
	script  *script
	key     string
	command once
	args    []any // in space
	space   [20]any
	texts   [3]string
	ntexts  int
	numbers [12]int64
	n       int
}

// once is a command that go-redis sends once: a script whose reply was lost may have run, and what follows
// from that is ours to decide. The replies of the scripts are numbers in a string.
type once struct{ redis.StringCmd }

// NoRetry keeps go-redis from sending the command again.
func (*once) NoRetry() bool { return true }

var calls = sync.Pool{New: func() any { return new(call) }}

// newCall returns a call without arguments. Whoever has its reply gives it back with free.
func newCall(s *script, key string) *call {
	c := calls.Get().(*call)
	c.script, c.key, c.ntexts, c.n = s, key, 0, 0
	c.args = append(c.space[:0], nil, nil, one, key)
	return c
}

func (c *call) free() { calls.Put(c) }

// one is the number of keys.
var one any = 1

// oneKey is told to go-redis with each command. A Cluster client that is not told asks any of its nodes about all commands
// before it sends its first, and keeps everybody waiting if that node is frozen.
const oneKey = 1

func (c *call) text(s string) {
	c.texts[c.ntexts] = s
	c.args = append(c.args, &c.texts[c.ntexts])
	c.ntexts++
}

func (c *call) number(n int64) {
	c.numbers[c.n] = n
	c.args = append(c.args, &c.numbers[c.n])
	c.n++
}

// prepare makes the command anew, with the whole script or its hash.
func (c *call) prepare(ctx context.Context, whole bool) *once {
	if whole {
		c.args[0], c.args[1] = "eval", c.script.text
	} else {
		c.args[0], c.args[1] = "evalsha", c.script.hash
	}
	c.command.StringCmd = *redis.NewStringCmd(ctx, c.args...)
	c.command.SetStepCount(oneKey)
	return &c.command
}
