package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/ground"
	"github.com/holdfast-go/holdfast/bench/internal/load"
	"github.com/holdfast-go/holdfast/bench/internal/result"
	"github.com/holdfast-go/holdfast/bench/internal/server"
	"github.com/holdfast-go/holdfast/bench/internal/worker"
)

// How long a worker may take to answer, and to end after a slice, before it counts as hung.
const (
	answerWithin = 15 * time.Second
	endWithin    = 20 * time.Second
)

// slice measures one contender in one case. What goes wrong becomes a note: a peer that hangs is a result, too.
func (r *runner) slice(ctx context.Context, srv *server.Server, c loadCase, name string, round int) result.Sample {
	sample := result.Sample{Case: c.name, Contender: name, Round: round}
	var notes []string
	note := func(err error) {
		if err != nil {
			notes = append(notes, err.Error())
		}
	}
	m, err := r.measure(ctx, srv, c, name)
	note(err)
	if m != nil {
		note(m.ended)
		if m.cycles() == 0 {
			note(errors.New("hung: not a single cycle"))
		} else {
			sample.Metrics = m.metrics()
		}
		for _, o := range m.outcomes {
			if o.Errors > 0 {
				notes = append(notes, fmt.Sprintf("%d errors, the first: %s", o.Errors, o.Error))
			}
		}
		note(m.violations())
	}
	sample.Note = strings.Join(notes, "; ")
	return sample
}

// measured is the raw yield of a slice.
type measured struct {
	loadCase
	kind     contender.Kind
	ground   *ground.Ground
	outcomes []load.Outcome
	server   server.Snapshot // what happened between the two looks at it
	between  time.Duration
	ended    error // how the workers ended
}

func (r *runner) measure(ctx context.Context, srv *server.Server, c loadCase, name string) (*measured, error) {
	kind, err := contender.Find(name)
	if err != nil {
		return nil, err
	}
	if kind.Local {
		c.goroutines = []int{c.total()} // its ideal: as many in one process
	}
	if err := srv.Flush(ctx); err != nil {
		return nil, err
	}
	page, file, err := ground.Create()
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(file) }()
	m := &measured{loadCase: c, kind: kind, ground: page}
	workers, err := startLoad(srv, c, name, file)
	if err == nil {
		err = m.run(ctx, srv, workers, r.Slice)
	}
	m.ended = endAll(workers)
	return m, err
}

func startLoad(srv *server.Server, c loadCase, name, file string) ([]*worker.Process, error) {
	var workers []*worker.Process
	for i, n := range c.goroutines {
		w, err := worker.Start("load", load.Config{
			Contender: name, Addr: srv.Addr, Ground: file, Process: i + 1, Goroutines: n,
			OwnKeys: c.ownKeys, Work: c.work, Readers: c.readers, Capacity: c.capacity,
		}, anyCPU)
		if err != nil {
			return workers, err
		}
		workers = append(workers, w)
	}
	for _, w := range workers {
		if err := w.Hear(nil, answerWithin); err != nil {
			return workers, err
		}
	}
	return workers, nil
}

// run lets the workers run and looks at the server at both ends of the slice.
func (m *measured) run(ctx context.Context, srv *server.Server, workers []*worker.Process, slice time.Duration) error {
	if err := tellAll(workers, "go"); err != nil {
		return err
	}
	time.Sleep(m.warmUp(slice))
	if err := tellAll(workers, "mark"); err != nil {
		return err
	}
	before, err := srv.Snapshot(ctx)
	if err != nil {
		return err
	}
	time.Sleep(m.length(slice))
	after, err := srv.Snapshot(ctx)
	if err != nil {
		return err
	}
	m.server, m.between = after.Since(before), after.At.Sub(before.At)
	if err := tellAll(workers, "stop"); err != nil {
		return err
	}
	for _, w := range workers {
		var o load.Outcome
		if err := w.Hear(&o, answerWithin); err != nil {
			return err
		}
		m.outcomes = append(m.outcomes, o)
	}
	return nil
}

func tellAll(workers []*worker.Process, word string) error {
	for _, w := range workers {
		if err := w.Tell(word); err != nil {
			return fmt.Errorf("%s: %w: %s", word, err, w.Complaints())
		}
	}
	return nil
}

// endAll ends the workers and tells of those that did not end by themselves, or complained.
func endAll(workers []*worker.Process) error {
	errs := make([]error, len(workers))
	var ending sync.WaitGroup
	for i, w := range workers {
		ending.Go(func() {
			errs[i] = w.End(endWithin)
			if said := w.Complaints(); said != "" {
				errs[i] = errors.Join(errs[i], errors.New("stderr: "+said))
			}
		})
	}
	ending.Wait()
	return errors.Join(errs...)
}
