// Package mass measures many at once: holds that are kept, goroutines that wait, queues that are served in order.
package mass

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/usage"
	"github.com/holdfast-go/holdfast/bench/internal/worker"
)

// acquirers is how many goroutines take the holds.
const acquirers = 64

// HoldsConfig is for RoleHolds.
type HoldsConfig struct {
	Contender string
	Addr      string
	Count     int
	Lease     time.Duration
}

// Taken is said when all is held.
type Taken struct {
	Memory     usage.Memory // more than before
	Goroutines int          // more than before the client was there
	Watchdogs  int          // those of holdfast's renewals among them
	Took       time.Duration
}

// Kept is said at the end.
type Kept struct {
	CPU     time.Duration // since Taken
	Elapsed time.Duration
	Lost    int
}

// Name returns the i-th name that holds are taken of.
func Name(i int) string { return "bench:held:" + strconv.Itoa(i) }

// RoleHolds takes many names, keeps them until told to "stop" and says how many were lost. It never releases
// them: the server of the measurement ends anyway.
func RoleHolds(c *worker.Console) error {
	var config HoldsConfig
	if err := c.Configure(&config); err != nil {
		return err
	}
	before := runtime.NumGoroutine()
	client, err := contender.Open(config.Contender, contender.Config{Addr: config.Addr, Lease: config.Lease})
	if err != nil {
		return err
	}
	handles := make([]contender.Handle, config.Count)
	for i := range handles {
		handles[i] = client.Handle(Name(i))
	}
	if err := warm(client); err != nil {
		return err
	}
	// What a handle holds on to is the price of a hold; the handle itself is ours.
	live := usage.Live()
	start := time.Now()
	if err := lockAll(handles); err != nil {
		return err
	}
	taken := Taken{Took: time.Since(start)}
	after := usage.Live()
	taken.Memory = usage.Memory{Heap: after.Heap - live.Heap, Stacks: after.Stacks - live.Stacks}
	taken.Goroutines, taken.Watchdogs = runtime.NumGoroutine()-before, goroutinesIn("/holdfast/watchdog.")
	cpu, start := usage.CPU(), time.Now()
	if err := c.Say(taken); err != nil {
		return err
	}
	if err := c.Await("stop"); err != nil {
		return err
	}
	kept := Kept{CPU: usage.CPU() - cpu, Elapsed: time.Since(start)}
	for _, h := range handles {
		if v, ok := h.(contender.Verifiable); ok && !v.Valid() {
			kept.Lost++
		}
	}
	return c.Say(kept)
}

// warm has the client make its connections and whatever else it has once, not for each hold.
func warm(client *contender.Client) error {
	handles := make([]contender.Handle, 4*acquirers)
	for i := range handles {
		handles[i] = client.Handle("bench:warm:" + strconv.Itoa(i))
	}
	if err := lockAll(handles); err != nil {
		return err
	}
	for _, h := range handles {
		if err := h.Unlock(); err != nil {
			return err
		}
	}
	return nil
}

func lockAll(handles []contender.Handle) error {
	var running sync.WaitGroup
	errs := make([]error, acquirers)
	for a := range acquirers {
		running.Go(func() {
			for i := a; i < len(handles) && errs[a] == nil; i += acquirers {
				if err := handles[i].Lock(context.Background()); err != nil {
					errs[a] = fmt.Errorf("%s: %w", Name(i), err)
				}
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// goroutinesIn counts the goroutines with code of a package on their stacks. The profile groups equal stacks under
// lines that begin with their number.
func goroutinesIn(code string) int {
	var profile strings.Builder
	if pprof.Lookup("goroutine").WriteTo(&profile, 1) != nil {
		return 0 // a Builder cannot fail
	}
	n := 0
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if !strings.Contains(stack, code) {
			continue
		}
		for line := range strings.Lines(stack) {
			if count, _, ok := strings.Cut(line, " @ "); ok {
				k, _ := strconv.Atoi(count)
				n += k
			}
		}
	}
	return n
}
