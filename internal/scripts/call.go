package scripts

import (
	"context"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/tenure"
)

// call is one run of a script. It keeps what its command needs in one piece, and is used again: most of what an
// uncontended acquire costs its client would be these allocations.
type call struct {
	script  *script
	key     string
	command once
	args    []any  // in space, if that is enough
	words   []word // in few, likewise
	n       int    // of words
	space   [9]any
	few     [5]word
}

// word is an argument, which go-redis writes as MarshalBinary gives it.
type word struct{ text []byte }

// once is a command that go-redis sends once: a script whose reply was lost may have run, and what follows
// from that is ours to decide. The replies of the scripts are numbers in a string.
type once struct{ redis.StringCmd }

// NoRetry keeps go-redis from sending the command again.
func (*once) NoRetry() bool { return true }

var (
	calls = sync.Pool{New: func() any { return new(call) }}
	large = sync.Pool{New: func() any { return new(call) }} // those that need more than space and few
)

// newCall returns a call without arguments. Whoever has its reply gives it back with free.
func newCall(s *script, key string) *call {
	c := calls.Get().(*call)
	c.script, c.key, c.n = s, key, 0
	c.args, c.words = append(c.space[:0], nil, nil, one, key), c.few[:]
	return c
}

// newRenewal returns a call that renews, which takes four words for each.
func newRenewal(rs []Renew) *call {
	if len(rs) == 1 {
		return newCall(&renewScript, rs[0].Key)
	}
	c := large.Get().(*call)
	c.script, c.key, c.n = &manyScript, rs[0].Key, 0
	if cap(c.words) < 4*len(rs) {
		c.args, c.words = make([]any, 0, 3+5*len(rs)), make([]word, 4*len(rs))
	}
	c.args = append(c.args[:0], nil, nil, len(rs))
	for i := range rs {
		c.args = append(c.args, rs[i].Key)
	}
	return c
}

func (c *call) free() {
	if len(c.words) > len(c.few) {
		large.Put(c)
		return
	}
	calls.Put(c)
}

// one is the number of keys.
var one any = 1

// oneKey is told to go-redis with each command. A Cluster client that is not told asks any of its nodes about all commands
// before it sends its first, and keeps everybody waiting if that node is frozen.
const oneKey = 1

// word adds an argument, which is empty.
func (c *call) word() *word {
	w := &c.words[c.n]
	w.text = w.text[:0]
	c.args = append(c.args, w)
	c.n++
	return w
}

func (w *word) add(text string) *word {
	w.text = append(w.text, text...)
	return w
}

func (w *word) number(n int64) *word {
	w.text = strconv.AppendInt(w.text, n, 10)
	return w
}

func (w *word) owner(o tenure.Owner) {
	w.text = strconv.AppendUint(append(append(w.text, o.Client...), ':'), o.N, 10)
}

// numbers adds each with a space behind it.
func (w *word) numbers(ns ...int64) *word {
	for _, n := range ns {
		w.number(n).add(" ")
	}
	return w
}

// MarshalBinary implements encoding.BinaryMarshaler.
func (w *word) MarshalBinary() ([]byte, error) { return w.text, nil }

// String is for those who log commands.
func (w *word) String() string { return string(w.text) }

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
