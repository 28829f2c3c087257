package integration

import (
	"os"
	"testing"
)

// needsFull skips what only the whole matrix runs.
func needsFull(t *testing.T) {
	t.Helper()
	if os.Getenv("HOLDFAST_FULL") != "1" {
		t.Skip("takes long: runs with HOLDFAST_FULL=1, see make test-failover")
	}
}

// notShort skips what -short leaves out, for example to run the rest under the race detector.
func notShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes some seconds: runs without -short")
	}
}
