package scripts_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/scripts"
	"github.com/holdfast-go/holdfast/internal/tenure"
)

func request(n int) scripts.Acquire {
	return scripts.Acquire{
		Key: fmt.Sprint("p:mutex:", n), Owner: tenure.Owner{Client: "c", N: uint64(n)}, Weight: 1, Capacity: 1, Depth: 1,
		Lease: 30 * time.Second, Window: 3 * time.Second, Claim: 3 * time.Second,
	}
}

func TestManyCallersAreAllAnswered(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	defer func() { _ = rdb.Close() }()
	c := scripts.NewCaller(rdb, "p:")
	defer c.Close(t.Context())
	var wg sync.WaitGroup
	var held atomic.Int64
	const n = 3000 // more than wait in line
	wg.Add(n)
	for i := range n {
		a := request(i)
		c.GoAcquire(t.Context(), &a, func(sent tenure.Instant, a scripts.Acquired, f *scripts.Failure) {
			defer wg.Done()
			if f != nil || sent.IsZero() {
				t.Errorf("sent %v, %v", sent, f)
			} else if a.Status == scripts.Held && a.Token > 0 && a.Seq == a.Token {
				held.Add(1)
			}
		})
	}
	wg.Wait()
	if held.Load() != n {
		t.Errorf("%d of %d are held", held.Load(), n)
	}
}

// Dead connections occupy the workers: others take their place at once, not when the connections time out.
func TestDeadConnectionsDoNotKeepOtherCallsWaiting(t *testing.T) {
	front := deafAtFirst(t, miniredis.RunT(t).Addr(), 6)
	rdb := redis.NewClient(&redis.Options{
		Addr: front, ReadTimeout: 10 * time.Second, PoolSize: 50, Protocol: 2, DisableIdentity: true, MaxRetries: -1,
	})
	defer func() { _ = rdb.Close() }()
	c := scripts.NewCaller(rdb, "p:")
	began := time.Now()
	answered := make(chan *scripts.Failure, 100)
	for i := range 100 {
		a := request(i)
		c.GoAcquire(context.Background(), &a, func(_ tenure.Instant, _ scripts.Acquired, f *scripts.Failure) { answered <- f })
		time.Sleep(20 * time.Millisecond)
	}
	select {
	case f := <-answered:
		if f != nil {
			t.Error(f)
		}
	case <-time.After(3 * time.Second):
		t.Fatal("no call is answered")
	}
	if took := time.Since(began); took > 7*time.Second {
		t.Errorf("it took %v", took)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	c.Close(ctx) // does not wait for what is stuck
}

// deafAtFirst listens for a server: the first connections are never answered, those after them are.
func deafAtFirst(t *testing.T, server string, deaf int) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for n := 0; ; n++ {
			in, err := l.Accept()
			if err != nil {
				return
			}
			if n < deaf {
				t.Cleanup(func() { _ = in.Close() })
				continue
			}
			out, err := net.Dial("tcp", server)
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
		}
	}()
	return l.Addr().String()
}
