package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/lone"
	"github.com/holdfast-go/holdfast/bench/internal/pinned"
	"github.com/holdfast-go/holdfast/bench/internal/result"
	"github.com/holdfast-go/holdfast/bench/internal/server"
	"github.com/holdfast-go/holdfast/bench/internal/worker"
)

// In mode a the server and the client have a core each, as over a network. Where the kernel may put both on one,
// the same code takes between one and two times as long from minute to minute.
const anyCPU = -1

// cores returns the two cores.
func cores() (forServer, forClient int, err error) {
	allowed := pinned.CPUs()
	if len(allowed) < 2 {
		return 0, 0, errors.New("two cores are needed, one for the server and one for the client")
	}
	return allowed[0], allowed[1], nil
}

var (
	loneContenders   = append(slices.Clone(mutual), "bare")
	scriptContenders = []string{"holdfast", "holdfast's commands", "Redisson", "Redisson without publish", "raw", "bare"}
)

// manyGoroutines keep the server busy, whose caches then are warm.
const manyGoroutines = 64

func (r *runner) alone(ctx context.Context, srv *server.Server) error {
	_, cpu, err := cores()
	if err != nil {
		return err
	}
	for round := range r.Rounds {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := r.blocks(srv, cpu, round); err != nil {
			return err
		}
		if err := r.scripts(srv, cpu, round, 1); err != nil {
			return err
		}
		if err := r.scripts(srv, cpu, round, manyGoroutines); err != nil {
			return err
		}
	}
	return nil
}

// blocks compares the times, and then counts what a cycle costs beside.
func (r *runner) blocks(srv *server.Server, cpu, round int) error {
	config := lone.BlocksConfig{
		Addr: srv.Addr, Contenders: loneContenders, Time: r.Slice * time.Duration(len(loneContenders)),
	}
	var blocks map[string]lone.Block
	if err := answer("blocks", config, cpu, config.Time, &blocks); err != nil {
		return err
	}
	cycles := 2000
	if r.Quick {
		cycles = 200
	}
	for _, name := range r.shuffled(loneContenders) {
		var d lone.Detail
		if err := answer("detail", lone.DetailConfig{Addr: srv.Addr, Contender: name, Cycles: cycles}, cpu, 0, &d); err != nil {
			return err
		}
		b := blocks[name]
		r.add(result.Sample{Case: "a alone", Contender: name, Round: round, Metrics: map[string]float64{
			"median_us": micros(b.Median), "mean_us": micros(b.Mean), "blocks": float64(b.Blocks),
			"rate":    1 / b.Median.Seconds(),
			"by_bare": ratio(b.Median, blocks["bare"].Median), "by_raw": ratio(b.Median, blocks["raw"].Median),
			"mean_by_bare": ratio(b.Mean, blocks["bare"].Mean), "mean_by_raw": ratio(b.Mean, blocks["raw"].Mean),
			"allocs": d.Allocations, "alloc_bytes": d.Bytes, "trips": d.Trips,
			"scripts": d.Scripts, "commands": d.Commands, "calls": d.Calls, "in_bytes": d.In, "out_bytes": d.Out,
			"server_us": d.ServerCPU, "client_us": d.ClientCPU,
		}})
	}
	return nil
}

// scripts compares what the server spends on the scripts, in pairs of turns that follow each other closely.
func (r *runner) scripts(srv *server.Server, cpu, round, goroutines int) error {
	config := lone.ScriptsConfig{
		Addr: srv.Addr, Contenders: scriptContenders, Rounds: 20, Goroutines: goroutines, Cycles: 300/goroutines + 5,
	}
	if r.Quick {
		config.Rounds = 3
	}
	var micros map[string][]float64
	if err := answer("scripts", config, cpu, 0, &micros); err != nil {
		return err
	}
	scenario := "a scripts"
	if goroutines > 1 {
		scenario += " " + strconv.Itoa(goroutines)
	}
	for _, contender := range scriptContenders {
		r.add(result.Sample{Case: scenario, Contender: contender, Round: round, Metrics: map[string]float64{
			"script_us":          middle(micros[contender]),
			"by_redisson":        paired(micros[contender], micros["Redisson"]),
			"by_redisson_silent": paired(micros[contender], micros["Redisson without publish"]),
			"by_raw":             paired(micros[contender], micros["raw"]),
		}})
	}
	return nil
}

// wake measures how long a message takes to a goroutine of another process, when both have slept for the work of mode e.
func (r *runner) wake(ctx context.Context, srv *server.Server, round int) result.Sample {
	config := lone.WakeConfig{Addr: srv.Addr, Times: 200}
	var took lone.Wake
	err := func() error {
		w, err := worker.Start("wake", config, anyCPU)
		if err != nil {
			return err
		}
		defer w.Kill()
		var ready string
		if err := w.Hear(&ready, longAnswerWithin); err != nil {
			return err
		}
		if err := lone.WakeIt(ctx, config, work); err != nil {
			return err
		}
		return w.Hear(&took, longAnswerWithin)
	}()
	s := sampled("e wake", "publish in a script", map[string]float64{
		"wake_us": micros(took.Median), "wake_p99_us": micros(took.P99),
	}, err)
	s.Round = round
	return s
}

// answer starts a worker that says one thing and ends.
func answer(role string, config any, cpu int, busy time.Duration, result any) error {
	w, err := worker.Start(role, config, cpu)
	if err != nil {
		return err
	}
	if err := w.Hear(result, busy+longAnswerWithin); err != nil {
		w.Kill()
		return fmt.Errorf("%s: %w", role, err)
	}
	return w.End(endWithin)
}

// longAnswerWithin is for workers whose work is counted, not timed.
const longAnswerWithin = 2 * time.Minute

// paired returns the median of a[i]/b[i].
func paired(a, b []float64) float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return middle(ratios)
}

func middle(values []float64) float64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return result.Median(sorted)
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
