package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
)

func TestPrometheusScrapesWhatTheClientDid(t *testing.T) {
	rdb, stop, err := connect()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	client, metrics, err := observed(rdb)
	if err != nil {
		t.Fatal(err)
	}
	defer shut(client)
	ctx := t.Context()
	if err := round(ctx, client); err != nil {
		t.Fatal(err)
	}
	held, err := client.Mutex("m").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release(ctx)
	if _, err := client.Mutex("m").TryLock(ctx); !errors.Is(err, holdfast.ErrNotAcquired) {
		t.Fatal(err)
	}

	got := scrape(t, metrics)
	for _, want := range []string{
		`holdfast_lock_acquisitions_total{holdfast_acquisition_how="at_once",holdfast_lock_kind="mutex"} 3`,
		`holdfast_lock_acquisitions_total{holdfast_acquisition_how="at_once",holdfast_lock_kind="rw",holdfast_lock_mode="read"} 1`,
		`holdfast_lock_acquisitions_total{error_type="not_acquired",holdfast_lock_kind="mutex"} 1`,
		`holdfast_lock_wait_duration_seconds_count{holdfast_lock_kind="sem"} 1`,
		`holdfast_lock_hold_duration_seconds_count{holdfast_lock_kind="mutex"} 2`,
		`holdfast_lock_held{holdfast_lock_kind="mutex"} 1`,
		`holdfast_lock_waiting{holdfast_lock_kind="mutex"} 0`,
	} {
		if !has(got, want) {
			t.Errorf("missing %s", want)
		}
	}
	if t.Failed() {
		t.Logf("scraped\n%s", got)
	}
}

func scrape(t *testing.T, metrics http.Handler) string {
	t.Helper()
	server := httptest.NewServer(metrics)
	defer server.Close()
	answer, err := server.Client().Get(server.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v", answer.StatusCode, err)
	}
	return string(body)
}

// has looks for a sample, whatever labels of the scope stand between its own.
func has(scraped, sample string) bool {
	name, rest, _ := strings.Cut(sample, "{")
	labels, value, _ := strings.Cut(rest, "} ")
	for line := range strings.Lines(scraped) {
		line = strings.TrimSpace(line)
		ok := strings.HasPrefix(line, name+"{") && strings.HasSuffix(line, "} "+value)
		for label := range strings.SplitSeq(labels, ",") {
			ok = ok && strings.Contains(line, label)
		}
		if ok {
			return true
		}
	}
	return false
}
