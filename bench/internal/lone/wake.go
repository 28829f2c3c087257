package lone

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/bench/internal/worker"
)

// WakeConfig is for RoleWake.
type WakeConfig struct {
	Addr  string
	Times int
}

// Wake is how long after the publisher set out the subscriber's goroutine ran.
type Wake struct{ Median, P99 time.Duration }

const wakeChannel = "bench:wake"

var publishing = redis.NewScript(`redis.call('PUBLISH', ARGV[1], ARGV[2]) return 1`)

// RoleWake is a process that sleeps until a message wakes a goroutine of its: what any hand-over by pub/sub costs at
// least. It says "ready", and then the times.
func RoleWake(c *worker.Console) error {
	var config WakeConfig
	if err := c.Configure(&config); err != nil {
		return err
	}
	rdb := redis.NewClient(&redis.Options{Addr: config.Addr})
	defer func() { _ = rdb.Close() }()
	ctx := context.Background()
	sub := rdb.Subscribe(ctx, wakeChannel)
	defer func() { _ = sub.Close() }()
	if _, err := sub.Receive(ctx); err != nil {
		return err
	}
	if err := c.Say("ready"); err != nil {
		return err
	}
	sent, failed := make(chan int64), make(chan error, 1)
	go func() {
		for {
			m, err := sub.ReceiveMessage(ctx)
			if err != nil {
				failed <- err
				return
			}
			at, _ := strconv.ParseInt(m.Payload, 10, 64)
			sent <- at
		}
	}()
	var took []time.Duration
	for len(took) < config.Times {
		select {
		case at := <-sent:
			took = append(took, time.Duration(time.Now().UnixNano()-at))
		case err := <-failed:
			return err
		}
	}
	slices.Sort(took)
	return c.Say(Wake{took[len(took)/2], took[len(took)*99/100]})
}

// WakeIt has a script publish a message after each pause, as often as RoleWake was told.
func WakeIt(ctx context.Context, config WakeConfig, pause time.Duration) error {
	rdb := redis.NewClient(&redis.Options{Addr: config.Addr, PoolSize: 1})
	defer func() { _ = rdb.Close() }()
	for range config.Times {
		time.Sleep(pause)
		if err := publishing.Run(ctx, rdb, []string{}, wakeChannel, time.Now().UnixNano()).Err(); err != nil {
			return err
		}
	}
	return nil
}
