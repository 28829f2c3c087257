package main

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/fleet"
	"github.com/holdfast-go/holdfast/examples/internal/group"
	"github.com/holdfast-go/holdfast/examples/internal/waits"
)

// result is what a process reports.
type result struct {
	Served int
	Waits  waits.Waits   // for the semaphore, one per call
	Took   time.Duration // for all calls
}

// work is what each process does.
func work(ctx context.Context, p *fleet.Process, j job) (result, error) {
	w := &worker{job: j, slots: p.Client.Semaphore(j.Name, j.Limit)}
	began := time.Now()
	err := group.Each(ctx, j.Callers, func(ctx context.Context, _ int) error { return w.caller(ctx) })
	w.result.Took = time.Since(began)
	return w.result, err
}

// worker is one process.
type worker struct {
	job   job
	slots *holdfast.Semaphore

	mu     sync.Mutex // guards result
	result result
}

// caller makes its calls, one after the other.
func (w *worker) caller(ctx context.Context) error {
	for range w.job.Calls {
		asked := time.Now()
		call := func(ctx context.Context) error {
			waited := time.Since(asked)
			served, err := w.call(ctx)
			w.record(served, waited)
			return err
		}
		var err error
		if w.job.Unsafe {
			err = call(ctx)
		} else {
			err = w.slots.Do(ctx, 1, call)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// call makes one call. Its context ends if the slot is lost, and the call with it. It reports whether the API
// served it.
func (w *worker) call(ctx context.Context) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.job.URL, http.NoBody)
	if err != nil {
		return false, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, err
	}
	return response.StatusCode == http.StatusNoContent, response.Body.Close()
}

func (w *worker) record(served bool, waited time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if served {
		w.result.Served++
	}
	w.result.Waits = append(w.result.Waits, waited)
}
