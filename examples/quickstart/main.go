// Quickstart shows holdfast at work in a few seconds. It needs nothing but Go:
//
//	go run ./examples/quickstart
//
// runs it on a server embedded in the process, and
//
//	REDIS_ADDR=localhost:6379 go run ./examples/quickstart
//
// on yours, with names of its own, of which nothing is left half a minute later. Every line with a check mark
// is an observation that was verified; if one did not hold, the exit status is 1.
//
// The scenes are in locking.go and losing.go, one function each, to be read next to the output.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"
)

// timeout is far beyond what a run takes: it keeps one from hanging on a server that does not answer.
const timeout = time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	err := run(ctx)
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	began := time.Now()
	s, err := newStage(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	for _, scene := range []func(context.Context, *stage) error{
		exclusion, reentry, renewal, handover, impatience, loss, fencing,
	} {
		if err := scene(ctx, s); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if s.failed > 0 {
		return fmt.Errorf("%d of %d observations did not hold, see the lines marked ✗", s.failed, s.checked)
	}
	fmt.Printf("\nAll %d observations held. It took %.1f s.\n", s.checked, time.Since(began).Seconds())
	return nil
}
