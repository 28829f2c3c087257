// Package contender holds what is measured against each other: holdfast, its peers, floors that show what
// Redis and go-redis themselves cost, and Go's own locks as the ideal. All are used in one way, as a Handle.
package contender

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// Handle is how one goroutine takes one name, again and again. It belongs to that goroutine.
type Handle interface {
	Lock(ctx context.Context) error
	Unlock() error
}

// Fenced is a Handle whose grants have fencing tokens. Token is that of the current hold.
type Fenced interface{ Token() int64 }

// Verifiable is a Handle that knows whether what it holds was lost.
type Verifiable interface{ Valid() bool }

// Client is a contender connected to a server, as one process has it.
type Client struct {
	Handle func(name string) Handle
	Reader func(name string) Handle // nil if there is nothing to share
	Close  func()
}

// Config is what a Client is made for.
type Config struct {
	Addr     string
	Capacity int                                                               // of semaphores
	Lease    time.Duration                                                     // the same for all, so that renewals cost all the same; 0 is DefaultLease
	Dial     func(ctx context.Context, network, addr string) (net.Conn, error) // nil: as the library does
}

// DefaultLease is holdfast's own.
const DefaultLease = 30 * time.Second

// pollEvery is how long the polling contenders sleep between two attempts. All three get the same. Their own
// defaults would make them slower in every contended mode (redsync: 50 to 250 ms, 32 times; redislock: no retry).
const pollEvery = time.Millisecond

// Kind is one way to lock.
type Kind struct {
	Name string
	Open func(Config) (*Client, error)
	// Commands are what it sends by itself, as INFO commandstats names them. The statistics also count what
	// scripts call, and these tell the two apart.
	Commands []string
	Local    bool // knows only its own process, so it runs with all goroutines in one
}

// scripted is what libraries send that do all their work in scripts.
var scripted = []string{
	"evalsha", "eval", "fcall", "ping", "hello", "select", "subscribe", "ssubscribe", "unsubscribe",
	"client|setinfo", "client|setname", "client|tracking", "client|maint_notifications", "wait", "script|load",
}

var withSet = append([]string{"set"}, scripted...)

// Kinds are all there are. The names are those of the reports.
var Kinds = []Kind{
	{Name: "holdfast", Open: openMutex, Commands: scripted},
	{Name: "holdfast FairLock", Open: openFair, Commands: scripted},
	{Name: "holdfast RWLock", Open: openRW, Commands: scripted},
	{Name: "holdfast Semaphore", Open: openSemaphore, Commands: scripted},
	{Name: "redsync", Open: openRedsync, Commands: withSet},
	{Name: "redislock", Open: openRedislock, Commands: scripted},
	{Name: "rueidislock", Open: openRueidislock, Commands: scripted},
	{Name: "raw", Open: openRaw, Commands: withSet},
	{Name: "bare", Open: openBare, Commands: scripted},
	{Name: "holdfast's commands", Open: openCommands, Commands: scripted},
	{Name: "Redisson", Open: openRedisson(true), Commands: scripted},
	{Name: "Redisson without publish", Open: openRedisson(false), Commands: scripted},
	{Name: "sync.Mutex", Open: openSyncMutex, Local: true},
	{Name: "sync.RWMutex", Open: openSyncRWMutex, Local: true},
	{Name: "x/sync semaphore", Open: openWeighted, Local: true},
}

// Find returns the kind of a name.
func Find(name string) (Kind, error) {
	for _, k := range Kinds {
		if k.Name == name {
			return k, nil
		}
	}
	return Kind{}, fmt.Errorf("no contender %q", name)
}

// Open connects the contender of a name.
func Open(name string, c Config) (*Client, error) {
	k, err := Find(name)
	if err != nil {
		return nil, err
	}
	if c.Lease == 0 {
		c.Lease = DefaultLease
	}
	client, err := k.Open(c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return client, nil
}

// goRedis is the client under all that use go-redis. The size of its pool is the default, 10 connections for
// each core: 64 and 256 changed nothing beyond the noise.
func goRedis(c Config) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: c.Addr, Dialer: c.Dial})
}

// pause sleeps between two attempts of a polling contender.
func pause(ctx context.Context, timer *time.Timer) error {
	timer.Reset(pollEvery)
	select {
	case <-ctx.Done():
		timer.Stop()
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
