package load

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
)

// afterError keeps a failing contender from spinning.
const afterError = time.Millisecond

// taker is one goroutine's loop.
type taker struct {
	*process
	number int
	write  contender.Handle
	fenced contender.Fenced // write, if it has tokens
	read   contender.Handle

	cycles atomic.Int64
	since  atomic.Int64 // when it began to wait, 0 while it does not
	_      [64]byte     // the counters of another taker are not on the same cache line
}

func (t *taker) run(ctx context.Context) {
	random := rand.New(rand.NewPCG(uint64(t.config.Process), uint64(t.number)))
	for ctx.Err() == nil {
		var err error
		if t.config.Readers >= 0 && random.Float64() < t.config.Readers {
			err = t.cycle(ctx, t.read, t.join, t.ground.Part)
		} else if t.config.Capacity > 0 {
			err = t.cycle(ctx, t.write, t.join, t.ground.Part)
		} else {
			err = t.cycle(ctx, t.write, t.enter, t.leave)
		}
		if err != nil && ctx.Err() == nil {
			t.failed(err)
			time.Sleep(afterError)
		}
	}
}

func (t *taker) cycle(ctx context.Context, h contender.Handle, enter, leave func()) error {
	asked := now()
	t.since.Store(int64(asked))
	err := h.Lock(ctx)
	t.since.Store(0)
	if err != nil {
		return err
	}
	got := now()
	t.waits.Add(got - asked)
	enter()
	if t.config.Work > 0 {
		time.Sleep(t.config.Work)
		t.sections.Add(int64(now() - got))
	}
	leave()
	err = h.Unlock()
	t.cycles.Add(1)
	return err
}

// enter and leave are around a section that excludes all others.
func (t *taker) enter() {
	if t.config.OwnKeys {
		return
	}
	t.ground.Enter()
	if t.fenced != nil {
		t.ground.Fence(t.fenced.Token())
	}
	if t.ground.Turn(int64(t.config.Process)) {
		if left := t.left.Load(); left > 0 {
			t.turns.Add(now() - time.Duration(left))
		}
	}
}

func (t *taker) leave() {
	if t.config.OwnKeys {
		return
	}
	t.left.Store(int64(now()))
	t.ground.Leave()
}

// join is for a section that some may be in at once: readers, holders of a semaphore. Writers tolerate none of
// them, which Join and Enter both see.
func (t *taker) join() {
	capacity := int64(1) << 31
	if t.config.Capacity > 0 {
		capacity = int64(t.config.Capacity)
	}
	t.ground.Join(capacity)
}
