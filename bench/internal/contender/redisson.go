package contender

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// What Redisson's RLock sends, the Java library that holdfast's feature set is measured by: a hash of owners with
// their depth. These are the scripts of its releases 3.0 to 3.2x; later ones call more. They are here for the
// server's time alone and never contended.
var (
	redissonLock = redis.NewScript(`
if ((redis.call('exists', KEYS[1]) == 0) or (redis.call('hexists', KEYS[1], ARGV[2]) == 1)) then
  redis.call('hincrby', KEYS[1], ARGV[2], 1);
  redis.call('pexpire', KEYS[1], ARGV[1]);
  return nil;
end;
return redis.call('pttl', KEYS[1]);`)
	redissonUnlock = redis.NewScript(`
if (redis.call('hexists', KEYS[1], ARGV[3]) == 0) then
  return nil;
end;
local counter = redis.call('hincrby', KEYS[1], ARGV[3], -1);
if (counter > 0) then
  redis.call('pexpire', KEYS[1], ARGV[2]);
  return 0;
else
  redis.call('del', KEYS[1]);
  redis.call('publish', KEYS[2], ARGV[1]);
  return 1;
end;
return nil;`)
	redissonUnlockQuietly = redis.NewScript(`
if (redis.call('hexists', KEYS[1], ARGV[3]) == 0) then
  return nil;
end;
local counter = redis.call('hincrby', KEYS[1], ARGV[3], -1);
if (counter > 0) then
  redis.call('pexpire', KEYS[1], ARGV[2]);
  return 0;
else
  redis.call('del', KEYS[1]);
  return 1;
end;
return nil;`)
)

type redissonName struct {
	rdb         *redis.Client
	unlock      *redis.Script
	name, owner string
	lease       int64 // ms
}

func (r *redissonName) Lock(ctx context.Context) error {
	left, err := redissonLock.Run(ctx, r.rdb, []string{r.name}, r.lease, r.owner).Int64()
	if errors.Is(err, redis.Nil) {
		return nil // as Redisson says it
	}
	if err == nil {
		err = errors.New("held for " + strconv.FormatInt(left, 10) + " ms")
	}
	return err
}

func (r *redissonName) Unlock() error {
	keys := []string{r.name, "redisson_lock__channel:{" + r.name + "}"}
	return r.unlock.Run(context.Background(), r.rdb, keys, 0, r.lease, r.owner).Err()
}

func openRedisson(publish bool) func(Config) (*Client, error) {
	unlock := redissonUnlockQuietly
	if publish {
		unlock = redissonUnlock
	}
	return func(c Config) (*Client, error) {
		rdb := goRedis(c)
		process := strconv.FormatInt(time.Now().UnixNano(), 36)
		handle := func(name string) Handle {
			return &redissonName{
				rdb: rdb, unlock: unlock, name: name, lease: c.Lease.Milliseconds(),
				owner: "b983c153-7421-469a-addb-" + process + ":" + strconv.FormatInt(owners.Add(1), 10),
			}
		}
		return &Client{Handle: handle, Close: func() { _ = rdb.Close() }}, nil
	}
}
