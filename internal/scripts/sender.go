package scripts

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/tenure"
)

// A sender carries calls that their callers do not wait for themselves: a few standing goroutines, the workers, take
// them from a channel, and each sends in one write whatever has come together meanwhile. A lone call never waits for
// company. There is one for each node, so that a slow one delays only itself; renewals go their own way.
type sender struct {
	caller *Caller
	jobs   chan job
	idle   atomic.Int64 // workers that wait for a job
	staff  atomic.Int64 // workers that are not stuck
	all    atomic.Int64
}

const (
	// maxStaff is how many workers share the calls: more do not make it faster.
	maxStaff = 4
	// stuck is how long a write may take before another worker takes over the next ones.
	stuck = 250 * time.Millisecond
	// maxWorkers bounds the workers, with those that are stuck: each returns after the ReadTimeout.
	maxWorkers = 64
	// maxJobs is how many calls leave in one write.
	maxJobs = 64
	// backlog is how many calls wait for a worker before others start goroutines of their own.
	backlog = 1024
)

// job is a call on its way.
type job struct {
	ctx  context.Context
	call *call
	done func(sent tenure.Instant, reply string, f *Failure)
}

// submit has a call sent, and done called with the answer and the instant before it was sent, by another goroutine. done
// may lock briefly. After Close nothing is called.
func (c *Caller) submit(j job, key string) {
	s := c.sender(j.ctx, key)
	if s.idle.Load() == 0 && s.staff.Load() < maxStaff {
		s.hire()
	}
	select {
	case s.jobs <- j:
	default: // a long stall: it is bounded by the number of callers
		go s.send([]job{j})
	}
}

func (c *Caller) sender(ctx context.Context, key string) *sender {
	node := ""
	if c.warm.Load() { // before the first answer a Cluster client may have to ask for its nodes
		node = c.Node(ctx, key)
	}
	if s, ok := c.senders.Load(node); ok {
		return s.(*sender)
	}
	s, _ := c.senders.LoadOrStore(node, &sender{caller: c, jobs: make(chan job, backlog)})
	return s.(*sender)
}

// Close ends the workers and waits for those that are not stuck.
func (c *Caller) Close(ctx context.Context) {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.quit)
	}
	c.mu.Unlock()
	done := make(chan struct{})
	go func() { c.workers.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// hire starts a worker if there are not enough.
func (s *sender) hire() {
	if s.all.Add(1) > maxWorkers {
		s.all.Add(-1)
		return
	}
	if s.staff.Add(1) > maxStaff {
		s.staff.Add(-1)
		s.all.Add(-1)
		return
	}
	s.caller.mu.Lock()
	defer s.caller.mu.Unlock()
	if !s.caller.closed {
		s.caller.workers.Go(s.work)
	}
}

// work takes jobs until Close. A worker that is stuck counts as lost, and ends when it is free again.
func (s *sender) work() {
	defer s.all.Add(-1)
	replaced := time.AfterFunc(time.Hour, func() {
		s.staff.Add(-1)
		s.hire()
	})
	replaced.Stop()
	batch := make([]job, 0, maxJobs)
	for {
		s.idle.Add(1)
		select {
		case <-s.caller.quit:
			s.idle.Add(-1)
			s.staff.Add(-1)
			return
		case j := <-s.jobs:
			batch = append(batch[:0], j)
		}
		s.idle.Add(-1)
		for more := true; more && len(batch) < maxJobs; {
			select {
			case j := <-s.jobs:
				batch = append(batch, j)
			default:
				more = false
			}
		}
		replaced.Reset(stuck)
		s.send(batch)
		clear(batch)
		if !replaced.Stop() {
			return
		}
	}
}

// send makes one attempt for each job.
func (s *sender) send(batch []job) {
	c := s.caller
	sent := tenure.Now()
	if len(batch) == 1 {
		j := batch[0]
		reply, f := c.run(j.ctx, j.call)
		j.call.free()
		c.warm.Store(true)
		j.done(sent, reply, f)
		return
	}
	calls := make([]*call, len(batch))
	for i, j := range batch {
		calls[i] = j.call
	}
	c.flying.Add(int64(len(calls)))
	replies, failures := c.runAll(batch[0].ctx, calls)
	c.flying.Add(-int64(len(calls)))
	for i, j := range batch {
		j.call.free()
		j.done(sent, replies[i], failures[i])
	}
}

// Alone reports whether a caller should make a call himself: few are on their way, and none takes long. Sharing a write
// gains nothing then, and handing a call to a worker costs two switches of goroutines.
func (c *Caller) Alone() bool { return c.brief && c.flying.Load() < maxStaff }

// GoAcquire is Acquire by the sender: done gets the answer, and the instant before it was sent. It waits for no
// acknowledgements.
func (c *Caller) GoAcquire(ctx context.Context, a *Acquire, done func(sent tenure.Instant, a Acquired, f *Failure)) {
	c.submit(job{ctx, c.acquire(a), func(sent tenure.Instant, reply string, f *Failure) {
		a, f := acquired(reply, f)
		done(sent, a, f)
	}}, a.Key)
}

// GoRelease is Release by the sender.
func (c *Caller) GoRelease(ctx context.Context, r *Release, done func(sent tenure.Instant, r Released, f *Failure)) {
	c.submit(job{ctx, c.release(r), func(sent tenure.Instant, reply string, f *Failure) {
		r, f := released(reply, f)
		done(sent, r, f)
	}}, r.Key)
}

// GoRenew is a single renewal by the sender. It waits for no acknowledgements.
func (c *Caller) GoRenew(ctx context.Context, r *Renew, done func(sent tenure.Instant, r Renewed, f *Failure)) {
	rs := []Renew{*r}
	c.submit(job{ctx, renewal(rs), func(sent tenure.Instant, reply string, f *Failure) {
		var answer [1]Renewed
		var failure [1]*Failure
		renewed(rs, reply, f, answer[:], failure[:])
		done(sent, answer[0], failure[0])
	}}, r.Key)
}
