package contender

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

var compareAndDelete = redis.NewScript(
	`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) else return 0 end`)

// owners numbers the handles of a process.
var owners atomic.Int64

// rawName is the lock that one writes in ten lines: SET NX PX, compare and delete, sleep in between.
type rawName struct {
	rdb   *redis.Client
	name  string
	lease time.Duration
	owner string // unique among processes
	n     int64  // number of acquisitions, so that each has a value of its own
	value string
	timer *time.Timer
}

func (r *rawName) Lock(ctx context.Context) error {
	r.n++
	r.value = r.owner + strconv.FormatInt(r.n, 10)
	for {
		err := r.rdb.SetArgs(ctx, r.name, r.value, redis.SetArgs{Mode: "NX", TTL: r.lease}).Err()
		if err == nil || !errors.Is(err, redis.Nil) {
			return err
		}
		if err := pause(ctx, r.timer); err != nil {
			return err
		}
	}
}

func (r *rawName) Unlock() error {
	return compareAndDelete.Run(context.Background(), r.rdb, []string{r.name}, r.value).Err()
}

func openRaw(c Config) (*Client, error) {
	rdb := goRedis(c)
	process := strconv.FormatInt(time.Now().UnixNano(), 36)
	handle := func(name string) Handle {
		return &rawName{
			rdb: rdb, name: name, lease: c.Lease, timer: time.NewTimer(time.Hour),
			owner: process + ":" + strconv.FormatInt(owners.Add(1), 10) + ":",
		}
	}
	return &Client{Handle: handle, Reader: handle, Close: func() { _ = rdb.Close() }}, nil
}

var (
	firstBare  = redis.NewScript(`return 1`)
	secondBare = redis.NewScript(`return 1 `) // another script, so that Redis caches two
)

// bareName locks nothing: two calls of a script that does nothing are the least a lock made of scripts costs.
type bareName struct {
	rdb  *redis.Client
	name string
}

func (b *bareName) Lock(ctx context.Context) error {
	return firstBare.Run(ctx, b.rdb, []string{b.name}, "owner", 30000).Err()
}

func (b *bareName) Unlock() error {
	return secondBare.Run(context.Background(), b.rdb, []string{b.name}, "owner").Err()
}

func openBare(c Config) (*Client, error) {
	rdb := goRedis(c)
	handle := func(name string) Handle { return &bareName{rdb: rdb, name: name} }
	return &Client{Handle: handle, Close: func() { _ = rdb.Close() }}, nil
}

// What holdfast's fast paths ask of Redis, without what its scripts make of that.
var (
	commandsOfAcquire = redis.NewScript(`
redis.call('EXISTS', KEYS[1])
redis.call('TIME')
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return '1 1796100000000000'`)
	commandsOfRelease = redis.NewScript(`
redis.call('HMGET', KEYS[1], ARGV[1], 'v')
redis.call('DEL', KEYS[1])
return '1'`)
)

// commandsName locks nothing: it is what holdfast's scripts would cost if Lua were free.
type commandsName struct {
	rdb   *redis.Client
	name  string
	owner string
}

func (n *commandsName) Lock(ctx context.Context) error {
	return commandsOfAcquire.Run(ctx, n.rdb, []string{n.name}, n.owner, "1 1 +30000 1796100000000000", 31000).Err()
}

func (n *commandsName) Unlock() error {
	return commandsOfRelease.Run(context.Background(), n.rdb, []string{n.name}, n.owner).Err()
}

func openCommands(c Config) (*Client, error) {
	rdb := goRedis(c)
	handle := func(name string) Handle {
		return &commandsName{rdb: rdb, name: name, owner: "h:AAAAAAAAAAAAAAAAAAAAAA@host-1234:" + strconv.FormatInt(owners.Add(1), 10)}
	}
	return &Client{Handle: handle, Close: func() { _ = rdb.Close() }}, nil
}
