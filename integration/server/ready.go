package server

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// awaitReady returns once the process pid itself answers on addr. Any answer
// would not do: another server may have won the race for the port.
func awaitReady(addr string, pid int, exited <-chan struct{}) error {
	client := redis.NewClient(&redis.Options{
		Addr: addr, MaxRetries: -1, PoolSize: 1,
		DialTimeout: time.Second, ReadTimeout: time.Second, ContextTimeoutEnabled: true,
	})
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), readyDeadline)
	defer cancel()

	var last error
	for {
		conn, err := net.Dial("tcp", addr) // a pool of connections would rest after failures
		if last = err; err == nil {
			_ = conn.Close()
			last = probe(ctx, client, pid)
		}
		if last == nil {
			return nil
		}
		select {
		case <-exited:
			return errExited
		case <-ctx.Done():
			return fmt.Errorf("not ready within %v: %w", readyDeadline, last)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func probe(ctx context.Context, client *redis.Client, pid int) error {
	if err := client.Ping(ctx).Err(); err != nil {
		if redis.HasErrorPrefix(err, "NOAUTH") {
			return nil // a test that sets a password gets a server that wants it
		}
		return err
	}
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		return err
	}
	for line := range strings.Lines(info) {
		if got, ok := strings.CutPrefix(strings.TrimSpace(line), "process_id:"); ok && got != strconv.Itoa(pid) {
			return fmt.Errorf("process %s answers, but %d was started: either a foreign server, or a wrapper that does not exec", got, pid)
		}
	}
	return nil
}
