package integration

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/server"
)

// One value shared by fifty goroutines: never two inside.
func TestFiftyGoroutinesShareAMutex(t *testing.T) {
	t.Parallel()
	m := newClient(t, server.Shared(t).Client()).Mutex(unique(t))
	inside, total := 0, 0
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range 20 {
				err := m.Do(within(t, 30*time.Second), func(context.Context) error {
					if inside++; inside != 1 {
						t.Errorf("%d inside", inside)
					}
					total++
					inside--
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if total != 1000 {
		t.Errorf("%d of 1000 updates are there", total)
	}
}
