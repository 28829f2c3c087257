package load

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/ground"
	"github.com/holdfast-go/holdfast/bench/internal/histogram"
	"github.com/holdfast-go/holdfast/bench/internal/usage"
	"github.com/holdfast-go/holdfast/bench/internal/worker"
)

// goroutinesEnd bounds how long the goroutines may take to notice that it is over.
const goroutinesEnd = 10 * time.Second

// begun is what times are counted from.
var begun = time.Now()

func now() time.Duration { return time.Since(begun) }

// process is all that the goroutines of this process share.
type process struct {
	config   Config
	ground   *ground.Ground
	waits    histogram.Histogram
	turns    histogram.Histogram
	left     atomic.Int64 // when this process last left the section, 0 if never
	sections atomic.Int64
	errors   atomic.Int64

	mu    sync.Mutex // guards first
	first error
}

// Role is the worker.
func Role(c *worker.Console) error {
	p := &process{}
	if err := c.Configure(&p.config); err != nil {
		return err
	}
	var err error
	if p.ground, err = ground.Open(p.config.Ground); err != nil {
		return err
	}
	client, err := p.config.open()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	takers := make([]*taker, p.config.Goroutines)
	for i := range takers {
		takers[i] = p.taker(client, i)
	}
	if err := c.Say("ready"); err != nil {
		return err
	}
	if err := c.Await("go"); err != nil {
		return err
	}
	var running sync.WaitGroup
	for _, t := range takers {
		running.Go(func() { t.run(ctx) })
	}
	if err := p.measure(c, takers); err != nil {
		return err
	}
	c.AwaitEnd()
	cancel()
	if err := within(goroutinesEnd, &running); err != nil {
		return err
	}
	client.Close()
	return nil
}

// taker makes goroutine i, connected but not running.
func (p *process) taker(client *contender.Client, i int) *taker {
	key := KeyShared
	if p.config.OwnKeys {
		key = "bench:" + strconv.Itoa(p.config.Process) + ":" + strconv.Itoa(i)
	}
	t := &taker{process: p, write: client.Handle(key), number: i}
	t.fenced, _ = t.write.(contender.Fenced)
	if client.Reader != nil {
		t.read = client.Reader(key)
	}
	return t
}

// measure tells the parent what happened between its "mark" and its "stop".
func (p *process) measure(c *worker.Console, takers []*taker) error {
	if err := c.Await("mark"); err != nil {
		return err
	}
	before := make([]int64, len(takers))
	for i, t := range takers {
		before[i] = t.cycles.Load()
	}
	sections := p.sections.Load()
	p.waits.Reset()
	p.turns.Reset()
	cpu, start := usage.CPU(), now()
	if err := c.Await("stop"); err != nil {
		return err
	}
	o := Outcome{
		Elapsed: now() - start, CPU: usage.CPU() - cpu, Waits: p.waits.Snapshot(), Turns: p.turns.Snapshot(),
		Sections: time.Duration(p.sections.Load() - sections), Errors: p.errors.Load(),
	}
	for i, t := range takers {
		o.Cycles = append(o.Cycles, t.cycles.Load()-before[i])
		if since := t.since.Load(); since > 0 {
			o.Waiting = max(o.Waiting, now()-time.Duration(since))
		}
	}
	if p.ground.Last() != int64(p.config.Process) {
		o.Away = now() - max(time.Duration(p.left.Load()), start)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.first != nil {
		o.Error = p.first.Error()
	}
	return c.Say(o)
}

func (p *process) failed(err error) {
	p.errors.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.first == nil {
		p.first = err
	}
}

func within(timeout time.Duration, running *sync.WaitGroup) error {
	ended := make(chan struct{})
	go func() {
		running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-time.After(timeout):
		return fmt.Errorf("waiters still wait %v after their context ended", timeout)
	}
}
