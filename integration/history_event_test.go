package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/worker"
	"github.com/holdfast-go/holdfast/internal/config"
)

func init() { worker.Register("historian", historian) }

// event is one acquisition as its process saw it, from the call to the end. Times are monotonic's; 0 is never.
type event struct {
	ID                  int64
	Process, Goroutine  int
	Weight              int64
	Called, Returned    int64 // the acquire
	Outcome             outcome
	Token               int64
	Deadline            int64 // the latest that the hold had
	Released, Confirmed int64 // Release was called, and returned
	Unconfirmed         bool  // Release returned an error: it may have happened, or may yet
	Lost                int64 // the loss was noticed, instead of a release
	ServerKeeps         int64 // the server cannot have ended the hold by itself before
}

type outcome string

const (
	got     outcome = "got"
	busy    outcome = "busy"    // an attempt that was refused
	unknown outcome = "unknown" // the wait was given up, or Redis gave no answer: it may hold for a while
)

// believed is until when its holder believed in the hold.
func (e event) believed() int64 {
	end := e.Deadline
	if e.Released > 0 {
		end = min(end, e.Released)
	}
	if e.Lost > 0 {
		end = min(end, e.Lost)
	}
	return end
}

// play is what a historian process does: its argument, as JSON.
type play struct {
	Addr, Kind, Name   string
	File               string // for the events
	Process            int
	Goroutines         int
	Lease              time.Duration
	For                time.Duration // how long it goes on
	Hold, Think        time.Duration // at most
	Tries, Cancels     int           // one of how many acquires is an attempt, or is given up early; 0: none
	ConnectionsAtATime int
}

// capacityOf is what a kind offers.
func capacityOf(kind string) int64 {
	switch kind {
	case "rw":
		return 1 << 30
	case "sem":
		return 3
	}
	return 1
}

// keeper is a historian process.
type keeper struct {
	play
	client *holdfast.Client
	freeze atomic.Bool  // goroutine 0 shall hold until it has lost, while the others ask for nothing
	busy   atomic.Int64 // goroutines in a cycle
	ids    atomic.Int64 // given so far

	mu     sync.Mutex // guards events
	events []event
}

// historian is the worker: it acquires and releases, and writes its events to a file. On "freeze" it
// says "holding" once it holds and has no waiters, who would be granted while it is frozen, and holds on until it has lost.
func historian(args []string) error {
	var p play
	if err := json.Unmarshal([]byte(args[0]), &p); err != nil {
		return err
	}
	// Claims last as long as leases, so that one margin fits both.
	short := func(c *config.Config) { c.Claim, c.Window = p.Lease, p.Lease }
	client, rdb, err := workerClient(&redis.Options{Addr: p.Addr, PoolSize: p.ConnectionsAtATime, ReadTimeout: p.Lease / 2}, short)
	if err != nil {
		return err
	}
	if err := rdb.Ping(context.Background()).Err(); err != nil {
		return err
	}
	k := &keeper{play: p, client: client}
	fmt.Println("ready")
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil { // all begin at once
		return err
	}
	go func() {
		if _, err := in.ReadString('\n'); err == nil {
			k.freeze.Store(true)
		}
	}()
	k.work()
	if err := closeWorker(client); err != nil {
		return err
	}
	return k.save()
}

func (k *keeper) work() {
	end := time.Now().Add(k.For)
	var wg sync.WaitGroup
	for g := range k.Goroutines {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(k.Process), uint64(g)))
			for time.Now().Before(end) {
				if g > 0 && k.freeze.Load() {
					time.Sleep(time.Millisecond)
					continue
				}
				k.busy.Add(1)
				e := k.cycle(g, r)
				k.busy.Add(-1)
				k.mu.Lock()
				k.events = append(k.events, e)
				k.mu.Unlock()
				pause(r, k.Think)
			}
		})
	}
	wg.Wait()
}

func (k *keeper) save() error {
	text, err := json.Marshal(k.events)
	if err != nil {
		return err
	}
	return os.WriteFile(k.File, text, 0o600)
}

// eventsIn reads what a historian saved.
func eventsIn(file string) (events []event, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return events, json.Unmarshal(text, &events)
}

// pause sleeps for up to d.
func pause(r *rand.Rand, d time.Duration) {
	if d > 0 {
		time.Sleep(time.Duration(r.Int64N(int64(d))))
	}
}

// cycle is one acquisition.
func (k *keeper) cycle(g int, r *rand.Rand) event {
	e := event{ID: int64(k.Process)<<24 + k.ids.Add(1), Process: k.Process, Goroutine: g}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	if k.Cancels > 0 && r.IntN(k.Cancels) == 0 {
		ctx, cancel = context.WithTimeout(context.Background(), time.Duration(5+r.IntN(35))*time.Millisecond)
	}
	defer cancel()
	acquire, weight := k.draw(r)
	e.Weight, e.Called = weight, monotonic()
	held, err := acquire(ctx)
	e.Returned = monotonic()
	switch {
	case errors.Is(err, holdfast.ErrNotAcquired):
		e.Outcome = busy
	case err != nil:
		e.Outcome = unknown
	default:
		e.Outcome, e.Token = got, held.Token()
		k.hold(&e, held, r)
	}
	return e
}

// draw picks what to acquire and how.
func (k *keeper) draw(r *rand.Rand) (acquire func(context.Context) (*holdfast.Hold, error), weight int64) {
	lease := holdfast.Lease(k.Lease)
	try := k.Tries > 0 && r.IntN(k.Tries) == 0
	either := func(wait, once func(context.Context) (*holdfast.Hold, error)) func(context.Context) (*holdfast.Hold, error) {
		if try {
			return once
		}
		return wait
	}
	switch k.Kind {
	case "mutex":
		m := k.client.Mutex(k.Name, lease)
		return either(m.Lock, m.TryLock), 1
	case "fair":
		m := k.client.FairLock(k.Name, lease)
		return either(m.Lock, m.TryLock), 1
	case "rw":
		m := k.client.RWLock(k.Name, lease)
		if r.IntN(3) == 0 {
			return either(m.Lock, m.TryLock), capacityOf("rw")
		}
		return either(m.RLock, m.TryRLock), 1
	}
	n := 1 + r.IntN(int(capacityOf(k.Kind)))
	return func(ctx context.Context) (*holdfast.Hold, error) {
		return k.client.Semaphore(k.Name, int(capacityOf(k.Kind)), lease).Acquire(ctx, n)
	}, int64(n)
}

// hold is the rest of a cycle: holding and releasing, or losing.
func (k *keeper) hold(e *event, held *holdfast.Hold, r *rand.Rand) {
	pause(r, k.Hold)
	if e.Goroutine == 0 && k.freeze.Load() && k.busy.Load() == 1 {
		fmt.Println("holding")
		select {
		case <-held.Done():
		case <-time.After(time.Minute):
		}
		k.freeze.Store(false)
	}
	e.Deadline = monotonic() + time.Until(held.Deadline()).Nanoseconds()
	// If the process can send nothing, the lease ends later than the hold, by the margin, which is the larger of a tenth
	// and 20 ms. The server counts in whole ms, by a clock that may be slewed.
	e.ServerKeeps = e.Deadline + max(k.Lease/10, 20*time.Millisecond).Nanoseconds() - (2 * time.Millisecond).Nanoseconds()
	if held.Err() != nil {
		e.Lost = monotonic()
		_ = held.Release(context.Background()) // tells nothing new
		return
	}
	e.Released = monotonic()
	err := held.Release(context.Background())
	e.Confirmed, e.Unconfirmed = monotonic(), err != nil
}
