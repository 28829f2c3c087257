package mass

import (
	"context"
	"runtime"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/usage"
	"github.com/holdfast-go/holdfast/bench/internal/worker"
)

// WaitersConfig is for RoleWaiters.
type WaitersConfig struct {
	Contender string
	Addr      string
	Names     int // that another process holds
	PerName   int
}

// Waiting is what the waiters of a process cost.
type Waiting struct {
	Memory     usage.Memory // more than with the same goroutines waiting for a channel
	Goroutines int          // more than those that wait, and than before the client was there
	Ended      int64        // waits that ended: none should
}

// RoleWaiters has goroutines wait for names that are held. Told to "wait" they do, told to "tell" it says what
// that costs.
func RoleWaiters(c *worker.Console) error {
	var config WaitersConfig
	if err := c.Configure(&config); err != nil {
		return err
	}
	before := runtime.NumGoroutine()
	client, err := contender.Open(config.Contender, contender.Config{Addr: config.Addr})
	if err != nil {
		return err
	}
	if err := warm(client); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel() // only by then: the process ends with it
	var ended atomic.Int64
	gate := make(chan struct{})
	for i := range config.Names * config.PerName {
		h := client.Handle(Name(i % config.Names))
		go func() {
			<-gate
			_ = h.Lock(ctx) // an error is as bad as a lock
			ended.Add(1)
		}()
	}
	live := usage.Live()
	if err := c.Say("ready"); err != nil {
		return err
	}
	if err := c.Await("wait"); err != nil {
		return err
	}
	close(gate)
	if err := c.Await("tell"); err != nil {
		return err
	}
	after := usage.Live()
	w := Waiting{
		Memory:     usage.Memory{Heap: after.Heap - live.Heap, Stacks: after.Stacks - live.Stacks},
		Goroutines: runtime.NumGoroutine() - before - config.Names*config.PerName,
		Ended:      ended.Load(),
	}
	if err := c.Say(w); err != nil {
		return err
	}
	c.AwaitEnd()
	return nil
}
