package turnstile

import (
	"context"
	"time"
)

// step is what follows from an answer.
type step int

const (
	stop  step = iota // nothing more is needed
	again             // another attempt, at once
	later             // another attempt, after a pause that grows
)

// pursuit makes attempts at something until it is settled. An attempt without an answer is not waited for: after a
// while the next one goes beside it, so that a dead connection costs no more than that. One goroutine runs it.
type pursuit[A any] struct {
	crew    *crew
	start   func(done func(A)) // starts an attempt, whose answer is given to done
	answers chan A
	wait    *time.Timer   // stopped while run does not run
	flying  int           // attempts without an answer so far
	next    time.Time     // when the next one goes
	pause   time.Duration // before the one after the next failure
}

// pursue makes attempts that each have a goroutine of their own.
func pursue[A any](c *crew, attempt func() A) *pursuit[A] {
	return &pursuit[A]{crew: c, start: func(done func(A)) {
		go func() { done(attempt()) }()
	}}
}

// run goes on until judge says stop, or ctx ends or until comes (zero: never): then it returns false, and may be called again.
func (p *pursuit[A]) run(ctx context.Context, until time.Time, judge func(A) step) bool {
	if p.answers == nil {
		p.answers, p.wait = make(chan A, maxInflight), time.NewTimer(0)
	}
	p.pause = max(p.pause, minBackoff)
	defer p.wait.Stop()
	for ctx.Err() == nil {
		now := time.Now()
		if !until.IsZero() && !now.Before(until) {
			return false
		}
		if p.flying < maxInflight && !now.Before(p.next) {
			p.flying++
			p.next = now.Add(patience)
			p.crew.add()
			p.start(func(a A) {
				p.answers <- a
				p.crew.done()
			})
		}
		wait := p.next.Sub(now)
		if !until.IsZero() {
			wait = min(wait, until.Sub(now))
		}
		p.wait.Reset(max(wait, time.Millisecond))
		select {
		case a := <-p.answers:
			p.flying--
			switch judge(a) {
			case stop:
				return true
			case again:
				p.next = time.Now()
			case later:
				p.next = time.Now().Add(jitter(p.pause))
				p.pause = min(2*p.pause, maxBackoff)
			}
		case <-p.wait.C:
		case <-ctx.Done():
		}
	}
	return false
}
