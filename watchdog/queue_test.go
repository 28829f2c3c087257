package watchdog

import (
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/tenure"
)

// Whatever is put, moved and removed, the first is always the earliest, and every watch knows its place.
func TestQueueKeepsTheOrder(t *testing.T) {
	rng, start := rand.New(rand.NewSource(1)), tenure.Now()
	var q queue
	in := map[*Watch]tenure.Instant{}
	for range 50_000 {
		var some *Watch
		for v := range in {
			some = v
			break
		}
		at := start.Add(time.Duration(rng.Intn(1000)))
		switch {
		case some == nil || rng.Intn(3) == 0 && len(in) < 200:
			some = new(Watch)
			fallthrough
		case rng.Intn(2) == 0:
			q.put(some, at)
			in[some] = at
		default:
			q.remove(some)
			delete(in, some)
			if some.index != outside {
				t.Fatalf("a removed watch is at %d", some.index)
			}
		}
		if len(q) != len(in) {
			t.Fatalf("%d in the queue, want %d", len(q), len(in))
		}
		for i, p := range q {
			if p.at != in[p.watch] || int(p.watch.index) != i+1 {
				t.Fatalf("place %d has %v of a watch for %v that believes itself at %d", i, p.at, in[p.watch], p.watch.index)
			}
		}
		if len(q) == 0 {
			continue
		}
		earliest := slices.MinFunc(q, func(a, b place) int { return int(a.at.Sub(b.at)) })
		if q[0].at.After(earliest.at) {
			t.Fatalf("the first is %v, the earliest %v", q[0].at, earliest.at)
		}
	}
}
