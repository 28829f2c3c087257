package turnstile_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/tenure"
)

// In virtual time only the holds take any: whoever waits in another client waits for two turns, of at most 50 ms, and a hold
// that began just before they ended.
func TestAnotherClientWaitsForTwoTurns(t *testing.T) {
	for _, length := range []time.Duration{time.Millisecond, 5 * time.Millisecond, 30 * time.Millisecond, 200 * time.Millisecond, time.Second} {
		t.Run(length.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := holdfasttest.NewServer(t)
				hog, other := server.Client().Mutex("n"), server.Client().Mutex("n")
				over, end := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				passed := 0 // guarded by the mutex
				for range 8 {
					wg.Go(func() {
						for over.Err() == nil {
							h, err := hog.Lock(t.Context())
							if err != nil {
								t.Error(err)
								return
							}
							if tenure.PassedOn(h.Token()) {
								passed++
							}
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
					if err := h.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
				end()
				wg.Wait()
				t.Logf("the longest wait took %v, %d holds were passed on", longest, passed)
				if limit := 100*time.Millisecond + length; longest > limit {
					t.Errorf("a wait took %v, at most %v is promised", longest, limit)
				}
				if passed < 15 && length < 50*time.Millisecond { // what lasts for longer than a turn goes back to the server
					t.Errorf("%d holds were passed on: this proves nothing", passed)
				}
			})
		})
	}
}

// A long hold outlives the news that nobody else waits: whoever came meanwhile is next.
func TestNoTurnBeginsOnOldNews(t *testing.T) {
	const long = 300 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		server := holdfasttest.NewServer(t)
		hog, other := server.Client().Mutex("n"), server.Client().Mutex("n")
		over, end := context.WithCancel(t.Context())
		begun := make(chan struct{})
		var ask atomic.Bool // for a long hold
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for over.Err() == nil {
					h, err := hog.Lock(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(time.Millisecond)
					if ask.CompareAndSwap(true, false) {
						begun <- struct{}{}
						time.Sleep(long)
					}
					if err := h.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for i := range 25 {
			time.Sleep(time.Duration(37+i) * time.Millisecond)
			if i == 2 { // both are subscribed now
				time.Sleep(1500 * time.Millisecond)
			}
			ask.Store(true)
			<-begun
			began := time.Now()
			h, err := other.Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(began); waited > long && i >= 2 {
				t.Errorf("wait %d behind a hold of %v took %v", i, long, waited)
			}
			if err := h.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		end()
		wg.Wait()
	})
}
