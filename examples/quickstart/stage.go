package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/server"
)

// stage is what the scenes play on: a Redis, and two services that are strangers to each other. That they
// live in one process here changes nothing: a hold belongs to the client that acquired it.
type stage struct {
	server  *server.Server
	rdb     *redis.Client // for the data that the locks protect
	orders  *holdfast.Client
	billing *holdfast.Client

	names           []string
	interrupted     func() error // nil while the run goes on
	checked, failed int
}

func newStage(ctx context.Context) (*stage, error) {
	srv, err := server.Start(ctx)
	if err != nil {
		return nil, err
	}
	s := &stage{server: srv, interrupted: ctx.Err}
	if err := s.connect(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// connect is what a service does when it starts: one go-redis client, one holdfast client on it.
func (s *stage) connect() (err error) {
	if s.rdb, err = server.Connect(s.server.Addr); err != nil {
		return err
	}
	if s.orders, err = holdfast.New(s.rdb, holdfast.Label("orders"), holdfast.Logger(nil)); err != nil {
		return err
	}
	if s.billing, err = holdfast.New(s.rdb, holdfast.Label("billing"), holdfast.Logger(nil)); err != nil {
		return err
	}
	fmt.Printf("holdfast on %v\n", s.server)
	return nil
}

// close takes down what connect built, in reverse. The context is a fresh one: that of the run may be over.
func (s *stage) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, client := range []*holdfast.Client{s.billing, s.orders} {
		if client != nil {
			if err := client.Close(ctx); err != nil {
				fmt.Println("close:", err)
			}
		}
	}
	if s.rdb != nil {
		for _, name := range s.names {
			s.rdb.Del(ctx, name)
		}
		_ = s.rdb.Close()
	}
	s.server.Close()
}

// name returns a name that nobody else uses on this server. A lock of that name and a plain key of that name
// do not collide: locks have a prefix.
func (s *stage) name(word string) string {
	name := server.Unique("quickstart:" + word)
	s.names = append(s.names, name)
	return name
}

// scene prints a headline.
func (s *stage) scene(headline string) { fmt.Printf("\n%s\n", headline) }

// say prints what is done.
func (s *stage) say(format string, args ...any) { fmt.Printf("    "+format+"\n", args...) }

// check prints what was observed, and remembers if it is not what was promised. After an interrupt it says
// nothing: what is seen then proves nothing.
func (s *stage) check(held bool, format string, args ...any) {
	if s.interrupted() != nil {
		return
	}
	s.checked++
	mark := "  ✓ "
	if !held {
		s.failed++
		mark = "  ✗ this did not hold: "
	}
	fmt.Printf(mark+format+"\n", args...)
}

// eventually waits until what is done in the background shows: at most a few seconds.
func eventually(ctx context.Context, condition func() bool) bool {
	deadline := time.Now().Add(3 * time.Second)
	for !condition() {
		if time.Now().After(deadline) || sleep(ctx, 5*time.Millisecond) != nil {
			return false
		}
	}
	return true
}

// sleep stands for work: it ends early, with an error, when its context does.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// brief rounds a duration for the eye.
func brief(d time.Duration) time.Duration {
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}
