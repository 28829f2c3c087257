package hold_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/hold"
	"github.com/holdfast-go/holdfast/internal/docs/examples"
)

func ExampleHold_Context() {
	client, stop := examples.Client() // on an embedded server
	defer stop()
	ctx := context.Background()
	orders := client.Mutex("orders:42")
	h, err := orders.Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	inside := h.Context(ctx) // for all that is done under the lock
	inner, err := orders.Lock(inside)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = inner.Release(ctx)

	_ = h.Release(ctx)
	<-inside.Done()
	fmt.Println(errors.Is(context.Cause(inside), holdfast.ErrReleased))
	// Output: true
}

func ExampleHold_Done() {
	client, stop := examples.Client()
	defer stop()
	ctx := context.Background()
	h, err := client.Mutex("orders:42", holdfast.FixedLease(200*time.Millisecond)).Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	select {
	case <-h.Done():
		fmt.Println(h.Valid(), errors.Is(h.Err(), holdfast.ErrLost))
	case <-time.After(10 * time.Second): // the work
	}
	// Output: false true
}

func ExampleHold_Extend() {
	client, stop := examples.Client()
	defer stop()
	ctx := context.Background()
	h, err := client.Mutex("orders:42", holdfast.FixedLease(time.Minute)).Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Release(ctx)
	before := h.Deadline()
	err = h.Extend(ctx) // a minute from now on
	fmt.Println(err, h.Deadline().After(before))
	// Output: <nil> true
}

// The resource keeps the greatest token that it has seen, and refuses smaller ones: here a hash in Redis.
func ExampleHold_Token() {
	rdb, down := examples.Redis()
	defer down()
	client, err := holdfast.New(rdb)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(context.Background())
	write := redis.NewScript(`
local token, seen = ARGV[1], redis.call('HGET', KEYS[1], 'token')
if seen and (#token < #seen or #token == #seen and token < seen) then
  return 0
end
redis.call('HSET', KEYS[1], 'token', token, 'status', ARGV[2])
return 1`)

	ctx := context.Background()
	orders := client.Mutex("orders:42", holdfast.FixedLease(200*time.Millisecond))
	first, err := orders.Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := orders.Lock(ctx) // when the lease of the first, who sleeps, has run out
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(write.Run(ctx, rdb, []string{"data:42"}, second.Token(), "paid").Bool())
	fmt.Println(write.Run(ctx, rdb, []string{"data:42"}, first.Token(), "open").Bool()) // it wakes up
	// Output:
	// true <nil>
	// false <nil>
}

func ExampleHold_Release() {
	client, stop := examples.Client()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	h, err := client.Mutex("orders:42").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	cancel()
	fmt.Println(h.Release(ctx)) // all the same
	fmt.Println(errors.Is(h.Release(ctx), holdfast.ErrReleased))
	var none *hold.Hold
	fmt.Println(errors.Is(none.Release(ctx), holdfast.ErrReleased))
	// Output:
	// <nil>
	// true
	// true
}
