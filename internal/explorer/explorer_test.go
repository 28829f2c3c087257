package explorer_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/explorer"
	"github.com/holdfast-go/holdfast/internal/scripts"
)

var explore = flag.Duration("explore", 0, "how long to explore each scope (also HOLDFAST_EXPLORE); 0: only its beginning")

// perScope is the time asked for, or 0.
func perScope(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("HOLDFAST_EXPLORE")
	if *explore != 0 || text == "" {
		return *explore
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("HOLDFAST_EXPLORE: %v", err)
	}
	return d
}

func load(t *testing.T) explorer.Source {
	t.Helper()
	source := explorer.Source{}
	for _, name := range []string{"acquire", "release", "renew", "renewals", "inspect"} {
		source[name] = scripts.Source(name)
	}
	return source
}

func requireSound(t *testing.T, report explorer.Report, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if report.Violation != "" {
		t.Fatal(report)
	}
	t.Log(report)
}

func TestNoStateOfSmallScopesBreaksARule(t *testing.T) {
	limits := explorer.Limits{Time: perScope(t)}
	if limits.Time == 0 {
		limits.States = 2_500
		if testing.Short() {
			limits.States = 800
		}
	}
	source := load(t)
	for _, scope := range explorer.Scopes() {
		t.Run(scope.Name, func(t *testing.T) {
			t.Parallel()
			report, err := explorer.Explore(source, scope, limits)
			requireSound(t, report, err)
		})
	}
}

func TestNoWalkThroughLargeScopesBreaksARule(t *testing.T) {
	limit := perScope(t)
	seed := time.Now().UnixNano()
	if limit == 0 {
		limit, seed = 200*time.Millisecond, 1
	}
	source := load(t)
	for _, scope := range explorer.LargeScopes() {
		t.Run(scope.Name, func(t *testing.T) {
			t.Parallel()
			report, err := explorer.Walk(source, scope, limit, seed)
			requireSound(t, report, err)
		})
	}
}
