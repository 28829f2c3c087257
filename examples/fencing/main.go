// Fencing shows the write that no lock can prevent, and how the resource refuses it.
//
//	go run ./examples/fencing
//	go run ./examples/fencing -unsafe
//
// A writer falls asleep with the lock in its hands: a long garbage collection, a debugger, a suspended machine. Its lease
// runs out, another one gets the lock and writes. Then the first one wakes up and goes on where it was. Looking at the
// hold first, as hold.Valid() does, is right, but there is always a moment between the look and the write.
//
// So each write carries the fencing token of its hold, and the script that writes refuses those that are older than
// what is there. -unsafe writes without a look at the token. It runs on an embedded server, or on that of REDIS_ADDR.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/server"
	"github.com/holdfast-go/holdfast/examples/internal/table"
)

var unsafe = flag.Bool("unsafe", false, "write without a look at the token")

// write writes a value if no later token was here: 1, else 0. Re-entries have the token of the outer hold, so equal ones
// pass. Token and value are in one key, so that they are lost together, if at all. Tokens are compared as text: a number of
// Lua has not bits enough.
var write = redis.NewScript(`
local token, seen = ARGV[1], redis.call('HGET', KEYS[1], 'token')
if seen and (#token < #seen or #token == #seen and token < seen) then
  return 0
end
redis.call('HSET', KEYS[1], 'token', token, 'value', ARGV[2])
return 1`)

var errStale = errors.New("refused: a later holder has written")

// account is the resource.
type account struct {
	rdb *redis.Client
	key string
}

func (a account) write(ctx context.Context, hold *holdfast.Hold, value string) error {
	if *unsafe {
		return a.rdb.HSet(ctx, a.key, "value", value).Err()
	}
	written, err := write.Run(ctx, a.rdb, []string{a.key}, hold.Token(), value).Bool()
	if err == nil && !written {
		err = errStale
	}
	return err
}

func main() { server.Main("fencing", run) }

func run(ctx context.Context, srv *server.Server) error {
	fmt.Printf("two writers of one account, on %v\n\n", srv)
	name := server.Unique("account")
	a := account{srv.Redis, name}
	defer srv.Redis.Del(context.WithoutCancel(ctx), name)
	sleeper, err := srv.Client("sleeper")
	if err != nil {
		return err
	}
	other, err := srv.Client("other")
	if err != nil {
		return err
	}
	if err := play(ctx, a, sleeper.Mutex(name, holdfast.FixedLease(300*time.Millisecond)), other.Mutex(name)); err != nil {
		return err
	}
	value, err := srv.Redis.HGet(ctx, name, "value").Result()
	if err != nil {
		return err
	}
	table.Row("account", "%s", value)
	if !*unsafe && value != "written by the other" {
		return errors.New("the late write went through")
	}
	return nil
}

// play has the sleeper write late.
func play(ctx context.Context, a account, sleeper, other *holdfast.Mutex) error {
	hold, err := sleeper.Lock(ctx)
	if err != nil {
		return err
	}
	defer hold.Release(ctx)
	table.Row("sleeper", "has the lock for 300 ms, token %d, and falls asleep", hold.Token())

	err = other.Do(ctx, func(ctx context.Context) error { // waits until the lease has run out
		later, _ := other.Held(ctx)
		table.Row("other", "has the lock, token %d, and writes", later.Token())
		return a.write(ctx, later, "written by the other")
	})
	if err != nil {
		return err
	}
	err = a.write(ctx, hold, "written by the sleeper") // what a process does that does not know that it was asleep
	switch {
	case err == nil:
		table.Row("sleeper", "wakes up and writes: that went through")
	case errors.Is(err, errStale):
		table.Row("sleeper", "wakes up and writes: %v", err)
	default:
		return err
	}
	table.Row("its hold", "%v", hold.Err())
	return nil
}
