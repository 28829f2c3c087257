package suite

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/mass"
	"github.com/holdfast-go/holdfast/bench/internal/result"
	"github.com/holdfast-go/holdfast/bench/internal/server"
	"github.com/holdfast-go/holdfast/bench/internal/worker"
)

// crowded are the contenders that renew by themselves and are woken by the server. What crowds cost is measured
// once: it takes long and hardly varies.
var crowded = []string{"holdfast", "rueidislock"}

// crowdWithin bounds how long a crowd may take to come together.
const crowdWithin = 2 * time.Minute

// holds keeps many locks for a while: mode h.
func (r *runner) holds(ctx context.Context, srv *server.Server) error {
	for _, name := range crowded {
		config := mass.HoldsConfig{Contender: name, Addr: srv.Addr, Count: 100_000, Lease: contender.DefaultLease}
		keep := r.Hold
		if r.Quick {
			config.Count, config.Lease, keep = 1000, time.Second, 500*time.Millisecond
		}
		metrics, err := keptHolds(ctx, srv, config, keep)
		r.add(sampled("h holds", name, metrics, err))
		if err := srv.Flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

func sampled(scenario, name string, metrics map[string]float64, err error) result.Sample {
	s := result.Sample{Case: scenario, Contender: name, Metrics: metrics}
	if err != nil {
		s.Metrics, s.Note = nil, err.Error()
	}
	return s
}

func keptHolds(ctx context.Context, srv *server.Server, config mass.HoldsConfig, keep time.Duration) (map[string]float64, error) {
	w, err := worker.Start("holds", config, anyCPU)
	if err != nil {
		return nil, err
	}
	defer w.Kill() // releasing all is not measured
	var taken mass.Taken
	if err := w.Hear(&taken, crowdWithin); err != nil {
		return nil, err
	}
	d, between, err := during(ctx, srv, keep)
	if err != nil {
		return nil, err
	}
	var kept mass.Kept
	if err := w.Tell("stop"); err != nil {
		return nil, err
	}
	if err := w.Hear(&kept, crowdWithin); err != nil {
		return nil, err
	}
	n := float64(config.Count)
	metrics := map[string]float64{
		"holds": n, "lost": float64(kept.Lost), "goroutines": float64(taken.Goroutines), "watchdogs": float64(taken.Watchdogs),
		"heap_bytes": float64(taken.Memory.Heap) / n, "stack_bytes": float64(taken.Memory.Stacks) / n,
		"acquired_s":     taken.Took.Seconds(),
		"renewals":       float64(d.Scripts()) / between.Seconds(),
		"client_percent": 100 * kept.CPU.Seconds() / kept.Elapsed.Seconds(),
		"server_percent": 100 * d.CPU.Seconds() / between.Seconds(),
		"seconds":        between.Seconds(),
	}
	if said := w.Complaints(); said != "" {
		return metrics, fmt.Errorf("stderr: %s", said)
	}
	return metrics, nil
}

// during returns what the server does in a while.
func during(ctx context.Context, srv *server.Server, while time.Duration) (server.Snapshot, time.Duration, error) {
	before, err := srv.Snapshot(ctx)
	if err != nil {
		return before, 0, err
	}
	select {
	case <-time.After(while):
	case <-ctx.Done():
		return before, 0, ctx.Err()
	}
	after, err := srv.Snapshot(ctx)
	return after.Since(before), after.At.Sub(before.At), err
}

// waiters has many wait for names that stay held: mode i.
func (r *runner) waiters(ctx context.Context, srv *server.Server) error {
	for _, name := range crowded {
		config := mass.WaitersConfig{Contender: name, Addr: srv.Addr, Names: 1000, PerName: 10}
		settle, window := 8*time.Second, 20*time.Second
		if r.Quick {
			config.Names, settle, window = 20, 300*time.Millisecond, 500*time.Millisecond
		}
		metrics, err := idleWaiters(ctx, srv, config, settle, window)
		r.add(sampled("i waiters", name, metrics, err))
		if err := srv.Flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

func idleWaiters(ctx context.Context, srv *server.Server, config mass.WaitersConfig, settle, window time.Duration) (map[string]float64, error) {
	kind, err := contender.Find(config.Contender)
	if err != nil {
		return nil, err
	}
	// So long a lease needs no renewal meanwhile: what remains is the waiters'.
	holder, err := worker.Start("holds", mass.HoldsConfig{
		Contender: config.Contender, Addr: srv.Addr, Count: config.Names, Lease: time.Hour,
	}, anyCPU)
	if err != nil {
		return nil, err
	}
	defer holder.Kill()
	if err := holder.Hear(nil, crowdWithin); err != nil {
		return nil, err
	}
	w, err := worker.Start("waiters", config, anyCPU)
	if err != nil {
		return nil, err
	}
	defer w.Kill()
	if err := w.Hear(nil, crowdWithin); err != nil {
		return nil, err
	}
	if err := w.Tell("wait"); err != nil {
		return nil, err
	}
	time.Sleep(settle)
	d, between, err := during(ctx, srv, window)
	if err != nil {
		return nil, err
	}
	subscribers, err := srv.Subscribers(ctx)
	if err != nil {
		return nil, err
	}
	var waiting mass.Waiting
	if err := w.Tell("tell"); err != nil {
		return nil, err
	}
	if err := w.Hear(&waiting, crowdWithin); err != nil {
		return nil, err
	}
	names, n := float64(config.Names), float64(config.Names*config.PerName)
	return map[string]float64{
		"waiters": n, "names": names, "ended": float64(waiting.Ended), "subscribers": float64(subscribers),
		"commands_per_name": float64(d.Sum(kind.Commands).Calls) / between.Seconds() / names,
		"heap_bytes":        float64(waiting.Memory.Heap) / n, "stack_bytes": float64(waiting.Memory.Stacks) / n,
		"goroutines":     float64(waiting.Goroutines),
		"server_percent": 100 * d.CPU.Seconds() / between.Seconds(),
	}, nil
}

// order checks that the fair lock serves first who came first.
func (r *runner) order(srv *server.Server) error {
	configs := []mass.OrderConfig{{Waiters: 1, Groups: 1}, {Waiters: 10, Groups: 10}, {Waiters: 100, Groups: 100}}
	if !r.Quick {
		configs = append(configs, mass.OrderConfig{Waiters: 1000, Groups: 1000}, mass.OrderConfig{Waiters: 10_000, Groups: 100})
	}
	for _, config := range configs {
		config.Addr, config.Clients = srv.Addr, queueProcesses
		var o mass.Order
		err := answer("order", config, anyCPU, 0, &o)
		r.add(sampled(fmt.Sprintf("k order %d", config.Waiters), "holdfast FairLock", map[string]float64{
			"groups": float64(config.Groups), "served": float64(o.Served),
			"inversions": float64(o.Inversions), "tokens": float64(o.Tokens),
		}, err))
	}
	return nil
}
