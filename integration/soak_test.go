package integration

import (
	"os"
	"testing"
	"time"
)

// For as long as HOLDFAST_SOAK says, three processes compete for a name of each kind while the network loses and delays what
// they send, waits are given up and holders freeze; the checkers look at every few seconds of it. See make soak.
func TestSoak(t *testing.T) {
	long, err := time.ParseDuration(os.Getenv("HOLDFAST_SOAK"))
	if err != nil {
		t.Skip("set HOLDFAST_SOAK to a duration, 1m for example, to run it")
	}
	plays := []play{
		{Kind: "mutex", Goroutines: 8, Cancels: 200},
		{Kind: "fair", Goroutines: 4, Cancels: 200, Hold: time.Millisecond},
		{Kind: "rw", Goroutines: 8, Cancels: 200},
		{Kind: "sem", Goroutines: 8, Cancels: 200},
	}
	for _, p := range plays {
		p.For = 5 * time.Second
		t.Run(p.Kind, func(t *testing.T) {
			t.Parallel()
			for end := time.Now().Add(long); time.Now().Before(end); {
				rarely := int64(10)
				if p.Kind == "mutex" {
					rarely = 1
				}
				r := record(t, p, true, rarely)
				r.requireTraffic(t, 200, 3)
				r.check(t)
			}
		})
	}
}
