package contender

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// redsyncMutex is a handle on redsync, whose Mutex may be used again but not by two goroutines.
type redsyncMutex struct{ *redsync.Mutex }

func (m redsyncMutex) Lock(ctx context.Context) error { return m.LockContext(ctx) }

func (m redsyncMutex) Unlock() error {
	ok, err := m.UnlockContext(context.Background())
	if err == nil && !ok {
		err = errors.New("redsync: not unlocked")
	}
	return err
}

// openRedsync takes the settings under which redsync does best on one server: it fails fast, since there is no
// second server to wait for, polls as often as the other pollers, and never gives up.
func openRedsync(c Config) (*Client, error) {
	rdb := goRedis(c)
	rs := redsync.New(goredis.NewPool(rdb))
	handle := func(name string) Handle {
		return redsyncMutex{rs.NewMutex(name, redsync.WithExpiry(c.Lease), redsync.WithFailFast(true),
			redsync.WithTries(1<<30), redsync.WithRetryDelay(pollEvery))}
	}
	return &Client{Handle: handle, Reader: handle, Close: func() { _ = rdb.Close() }}, nil
}

// redislockName is a handle on redislock.
type redislockName struct {
	client *redislock.Client
	name   string
	lease  time.Duration
	lock   *redislock.Lock
}

// The retry strategy has no state, so one serves all.
var redislockOptions = &redislock.Options{RetryStrategy: redislock.LinearBackoff(pollEvery)}

func (n *redislockName) Lock(ctx context.Context) (err error) {
	n.lock, err = n.client.Obtain(ctx, n.name, n.lease, redislockOptions)
	return err
}

func (n *redislockName) Unlock() error { return n.lock.Release(context.Background()) }

func openRedislock(c Config) (*Client, error) {
	rdb := goRedis(c)
	client := redislock.New(rdb)
	handle := func(name string) Handle { return &redislockName{client: client, name: name, lease: c.Lease} }
	return &Client{Handle: handle, Reader: handle, Close: func() { _ = rdb.Close() }}, nil
}

// rueidislockName is a handle on rueidislock.
type rueidislockName struct {
	locker rueidislock.Locker
	name   string
	held   context.Context // ends when the lock is lost
	cancel context.CancelFunc
}

func (n *rueidislockName) Lock(ctx context.Context) (err error) {
	n.held, n.cancel, err = n.locker.WithContext(ctx, n.name)
	return err
}

func (n *rueidislockName) Unlock() error {
	n.cancel() // returns when the key is deleted
	return nil
}

func (n *rueidislockName) Valid() bool { return n.held.Err() == nil }

// openRueidislock follows its README: a majority of one for one server, NoLoopTracking for Redis from 7.0.5 on.
// TryNextAfter is after how long an attempt is given up, by default 20 ms. On a busy machine that gives up
// attempts that succeeded, and each leaves its waiter asleep; one second is for its benefit.
func openRueidislock(c Config) (*Client, error) {
	option := rueidis.ClientOption{InitAddress: []string{c.Addr}, ForceSingleClient: true}
	if c.Dial != nil {
		option.DialCtxFn = func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return c.Dial(ctx, "tcp", addr)
		}
	}
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: option, KeyValidity: c.Lease, KeyMajority: 1, NoLoopTracking: true, TryNextAfter: time.Second,
	})
	if err != nil {
		return nil, err
	}
	handle := func(name string) Handle { return &rueidislockName{locker: locker, name: name} }
	return &Client{Handle: handle, Reader: handle, Close: locker.Close}, nil
}
