// Package examples gives the Example functions of this module what a service has when it has started.
package examples

import (
	"context"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

// Redis returns a go-redis client of a new embedded server, and a function that ends both. It panics where an Example
// could not go on.
func Redis() (rdb *redis.Client, stop func()) {
	mini, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	mini.ClockTTL(true) // without it keys never expire
	rdb = redis.NewClient(&redis.Options{Addr: mini.Addr()})
	return rdb, func() {
		_ = rdb.Close()
		mini.Close()
	}
}

// Client returns a client on a new embedded server, labelled "example", and a function that ends both.
func Client(options ...holdfast.Option) (client *holdfast.Client, stop func()) {
	rdb, down := Redis()
	client, err := holdfast.New(rdb, append([]holdfast.Option{holdfast.Label("example")}, options...)...)
	if err != nil {
		panic(err)
	}
	return client, func() {
		_ = client.Close(context.Background())
		down()
	}
}
