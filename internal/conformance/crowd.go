package conformance

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
)

// crowd is many at once.
var crowd = []scenario{
	{name: "a crowd never exceeds what is allowed", run: func(e *env) { crowded(e, 20, 0) }},
	{name: "a crowd of impatient ones never exceeds what is allowed", run: func(e *env) { crowded(e, 10, 3) }},
}

// census adds up what those inside have: two numbers, whatever they mean. Who has lost its hold meanwhile does
// not count, for a goroutine may be stopped anywhere for longer than a lease.
type census struct {
	mu      sync.Mutex // guards weights
	weights map[*holdfast.Hold][2]int
	token   atomic.Int64 // of the latest that conflicts with all others
}

// check goes in and out, and looks whether one may be in there beside the others.
func (c *census) check(e *env, h *holdfast.Hold, rival bool) {
	own := [2]int{1, 0}
	if rival {
		own = [2]int{0, 1}
	}
	n := c.visit(h, own)
	if n[1] > 1 || n[1] > 0 && n[0] > 0 || e.kind.exclusive && n[0] > 1 {
		e.Errorf("inside are %d and %d rivals", n[0], n[1])
	}
	if e.kind.exclusive || rival {
		if last := c.token.Swap(h.Token()); last >= h.Token() && h.Valid() {
			e.Errorf("token %d after %d", h.Token(), last)
		}
	}
}

// visit goes in with a hold, adds up, and goes out.
func (c *census) visit(h *holdfast.Hold, own [2]int) (sum [2]int) {
	c.mu.Lock()
	c.weights[h] = own
	c.mu.Unlock()
	runtime.Gosched()
	c.mu.Lock()
	defer c.mu.Unlock()
	for other, w := range c.weights {
		if other.Valid() {
			sum[0] += w[0]
			sum[1] += w[1]
		}
	}
	delete(c.weights, h)
	return sum
}

// enough is when a crowd begins no further cycle: a slow server need not see all of them.
const enough = 2 * time.Second

// crowded has 30 goroutines of two clients take the name many times each, every third one as a rival. One in
// impatient waits has a few milliseconds only; 0: none.
func crowded(e *env, cycles, impatient int) {
	goroutines := 30
	if e.suite.polling { // a hand-over takes up to a second
		goroutines, cycles = 3, 2
	}
	clients := []*holdfast.Client{e.client(), e.client()}
	ctx := e.ctx()
	in := census{weights: map[*holdfast.Hold][2]int{}}
	var done atomic.Int64
	end := time.Now().Add(enough)
	var wg sync.WaitGroup
	for i := range goroutines {
		rival := i%3 == 2
		l := e.lock(clients[i%2])
		if rival {
			l = e.rival(clients[i%2])
		}
		wg.Go(func() {
			for n := range cycles {
				if n > 0 && time.Now().After(end) {
					return
				}
				ctx, hasty := ctx, impatient > 0 && (i+n)%impatient == 0
				if hasty {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, time.Duration(rand.IntN(8000))*time.Microsecond)
					defer cancel()
				}
				h, err := l.Lock(ctx)
				switch {
				case hasty && errors.Is(err, context.DeadlineExceeded):
					continue
				case err != nil:
					e.Error(err)
					return
				}
				in.check(e, h, rival)
				done.Add(1)
				began := time.Now()
				if err := h.Release(ctx); err != nil && time.Since(began) < 200*time.Millisecond { // else it came too late
					e.Error(err)
				}
			}
		})
	}
	wg.Wait()
	e.Logf("%d of %d went through", done.Load(), goroutines*cycles)
	if q := e.state(e.lock(clients[0])).Queue; impatient == 0 && len(q) != 0 {
		e.Errorf("left in the queue: %+v", q)
	}
}
