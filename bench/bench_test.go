package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/pinned"
	"github.com/holdfast-go/holdfast/bench/internal/report"
	"github.com/holdfast-go/holdfast/bench/internal/result"
	"github.com/holdfast-go/holdfast/bench/internal/server"
	"github.com/holdfast-go/holdfast/bench/internal/suite"
	"github.com/holdfast-go/holdfast/bench/internal/worker"
)

func TestMain(m *testing.M) {
	worker.Main(suite.Roles) // does not return in a worker
	if os.Getenv("GORACE") == "" {
		// Else the race detector has each worker sleep for a second before it ends.
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	os.Exit(m.Run())
}

const redisServer = "redis-server"

// needServer skips where there is no server. In CI that would hide a broken setup, so there it fails.
func needServer(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath(redisServer); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

// BenchmarkAlone is lock and release of a free name, beside what go-redis and Redis cost.
func BenchmarkAlone(b *testing.B) {
	needServer(b)
	srv, err := server.Start(context.Background(), redisServer, -1)
	if err != nil {
		b.Fatal(err)
	}
	defer srv.Stop()
	for _, name := range []string{"holdfast", "raw", "bare"} {
		b.Run(name, func(b *testing.B) {
			client, err := contender.Open(name, contender.Config{Addr: srv.Addr})
			if err != nil {
				b.Fatal(err)
			}
			defer client.Close()
			h, ctx := client.Handle("bench:"+name), context.Background()
			b.ReportAllocs()
			for b.Loop() {
				if err := h.Lock(ctx); err != nil {
					b.Fatal(err)
				}
				if err := h.Unlock(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestEveryModeYieldsFigures runs all of the suite, too shortly for the figures to mean much.
func TestEveryModeYieldsFigures(t *testing.T) {
	needServer(t)
	modes := suite.Modes
	if len(pinned.CPUs()) < 2 {
		modes = modes[1:] // the first needs two cores
	}
	set, version, err := suite.Run(t.Context(), suite.Settings{
		Modes: modes, Rounds: 1, Slice: 80 * time.Millisecond, Quick: true, Redis: redisServer, Log: t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	hung := 0
	for _, sample := range set {
		if strings.HasPrefix(sample.Contender, "holdfast") && sample.Metrics == nil {
			t.Logf("%s, %s: %s", sample.Case, sample.Contender, sample.Note)
			hung++
		}
		checkSample(t, sample)
	}
	if hung > 1 { // one may be a pause of the machine, longer than a slice
		t.Errorf("no figures in %d cases", hung)
	}
	for _, mode := range modes {
		found := false
		for _, scenario := range set.Cases() {
			found = found || strings.HasPrefix(scenario, mode)
		}
		if !found {
			t.Errorf("mode %s gave nothing", mode)
		}
	}
	page := report.Markdown(set, report.ThisMachine(version, nil), 1, "chart.svg")
	for _, part := range []string{"go run ./bench", version, "## Goals", "### Semaphore", "| rueidislock |"} {
		if !strings.Contains(page, part) {
			t.Errorf("the report lacks %q", part)
		}
	}
	if svg := report.Chart(set); !strings.Contains(svg, "</svg>") || strings.Contains(svg, "NaN") {
		t.Errorf("chart: %s", svg)
	}
}

// checkSample is strict with holdfast only: what a peer does on a busy machine is none of our tests.
func checkSample(t *testing.T, s result.Sample) {
	t.Helper()
	ours := strings.HasPrefix(s.Contender, "holdfast")
	if ours && strings.Contains(s.Note, "BROKEN") {
		t.Errorf("%s, %s: %s", s.Case, s.Contender, s.Note)
	}
	for name, v := range s.Metrics {
		if v < 0 && name != "heap_bytes" && name != "stack_bytes" { // less lives after than before: noise
			t.Errorf("%s, %s: %s is %v", s.Case, s.Contender, name, v)
		}
	}
	if rate, ok := s.Metrics["rate"]; ok && rate <= 0 {
		t.Errorf("%s, %s: %v cycles a second", s.Case, s.Contender, rate)
	}
}
