package turnstile_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/holdfasttest"
)

// In virtual time only the holds take any: whoever waits in another client waits for two turns, of at most 50 ms, each of
// which may end with a hold that began just before.
func TestAnotherClientWaitsForTwoTurns(t *testing.T) {
	for _, length := range []time.Duration{time.Millisecond, 5 * time.Millisecond, 30 * time.Millisecond, 200 * time.Millisecond, time.Second} {
		t.Run(length.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := holdfasttest.NewServer(t)
				hog, other := server.Client().Mutex("n"), server.Client().Mutex("n")
				over, end := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				passed, last := 0, int64(0) // guarded by the mutex
				for range 8 {
					wg.Go(func() {
						for over.Err() == nil {
							h, err := hog.Lock(t.Context())
							if err != nil {
								t.Error(err)
								return
							}
							if h.Token() == last+1 {
								passed++
							}
							last = h.Token()
							time.Sleep(length)
							if err := h.Release(t.Context()); err != nil {
								t.Error(err)
							}
						}
					})
				}
				longest := time.Duration(0)
				for i := range 15 {
					time.Sleep(137 * time.Millisecond)
					if i == 2 { // both are subscribed now
						time.Sleep(1500 * time.Millisecond)
						longest = 0
					}
					began := time.Now()
					h, err := other.Lock(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					longest = max(longest, time.Since(began))
					last = h.Token()
					if err := h.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
				end()
				wg.Wait()
				t.Logf("the longest wait took %v, %d holds were passed on", longest, passed)
				if limit := 100*time.Millisecond + 2*length; longest > limit {
					t.Errorf("a wait took %v, at most %v is promised", longest, limit)
				}
				if passed < 15 {
					t.Errorf("%d holds were passed on: this proves nothing", passed)
				}
			})
		})
	}
}
