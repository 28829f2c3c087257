// Package suite runs the modes of the benchmark and collects what they give.
package suite

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/load"
	"github.com/holdfast-go/holdfast/bench/internal/lone"
	"github.com/holdfast-go/holdfast/bench/internal/mass"
	"github.com/holdfast-go/holdfast/bench/internal/result"
	"github.com/holdfast-go/holdfast/bench/internal/server"
	"github.com/holdfast-go/holdfast/bench/internal/worker"
)

// Settings say what to measure and how long.
type Settings struct {
	Modes  []string      // letters
	Rounds int           // of each contender in each case
	Slice  time.Duration // of one contender in one round
	Hold   time.Duration // how long many holds are kept (mode h)
	Quick  bool          // few cases and small numbers: to see that it works
	Redis  string        // the server's binary
	Log    io.Writer     // progress
}

// Roles are what worker processes of the suite can be.
var Roles = map[string]worker.Role{
	"load":    load.Role,
	"blocks":  lone.RoleBlocks,
	"detail":  lone.RoleDetail,
	"scripts": lone.RoleScripts,
	"wake":    lone.RoleWake,
	"holds":   mass.RoleHolds,
	"waiters": mass.RoleWaiters,
	"order":   mass.RoleOrder,
}

// Modes are all letters that there are.
var Modes = []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "k"}

// runner is one run of the suite. It belongs to one goroutine.
type runner struct {
	Settings
	set    result.Set
	random *rand.Rand // for the order within a round
}

// Run measures. The server's version comes with the results.
func Run(ctx context.Context, s Settings) (result.Set, string, error) {
	r := &runner{Settings: s, random: rand.New(rand.NewPCG(1, 2))} // the same order in each run
	version := ""
	for _, mode := range s.Modes {
		if !slices.Contains(Modes, mode) {
			return nil, "", fmt.Errorf("no mode %q; there are %s", mode, strings.Join(Modes, " "))
		}
		cpu := anyCPU
		if mode == "a" {
			var err error
			if cpu, _, err = cores(); err != nil {
				return nil, "", err
			}
		}
		srv, err := server.Start(ctx, s.Redis, cpu)
		if err != nil {
			return nil, "", err
		}
		version = srv.Version(ctx)
		err = r.mode(ctx, srv, mode)
		srv.Stop()
		if err != nil {
			return nil, "", fmt.Errorf("mode %s: %w", mode, err)
		}
		if ctx.Err() != nil {
			return nil, "", ctx.Err()
		}
	}
	return r.set, version, nil
}

func (r *runner) mode(ctx context.Context, srv *server.Server, mode string) error {
	switch mode {
	case "a":
		return r.alone(ctx, srv)
	case "h":
		return r.holds(ctx, srv)
	case "i":
		return r.waiters(ctx, srv)
	}
	var cases []loadCase
	for _, c := range loadCases(r.Quick) {
		if strings.HasPrefix(c.name, mode) {
			cases = append(cases, c)
		}
	}
	for round := range r.Rounds {
		if mode == "e" {
			r.add(r.wake(ctx, srv, round))
		}
		for _, c := range cases {
			for _, contender := range r.shuffled(c.contenders) {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				r.add(r.slice(ctx, srv, c, contender, round))
			}
		}
	}
	if mode == "k" {
		return r.order(srv)
	}
	return nil
}

func (r *runner) shuffled(names []string) []string {
	s := slices.Clone(names)
	r.random.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
	return s
}

func (r *runner) add(s result.Sample) {
	r.set = append(r.set, s)
	line := fmt.Sprintf("%-14s round %d  %-24s", s.Case, s.Round+1, s.Contender)
	for _, metric := range []string{"rate", "p99_ms", "worst_ms", "scripts", "server_us"} {
		if v, ok := s.Metrics[metric]; ok {
			line += fmt.Sprintf("  %s %.4g", metric, v)
		}
	}
	if s.Note != "" {
		line += "  NOTE: " + s.Note
	}
	fmt.Fprintln(r.Log, line)
}
