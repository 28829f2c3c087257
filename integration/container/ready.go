package container

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

func address(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// awaitAny returns the first address that answers. Inside a container
// testcontainers expects the engine at the gateway, which is right if the tests
// run beside the servers, and wrong if the engine runs in here too.
func awaitAny(ctx context.Context, addrs ...string) (string, error) {
	for {
		var failures []error
		for _, addr := range addrs {
			err := ping(ctx, addr)
			if err == nil {
				return addr, nil
			}
			failures = append(failures, err)
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("the server in the container does not answer: %w", errors.Join(failures...))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func ping(ctx context.Context, addr string) error {
	c := redis.NewClient(&redis.Options{
		Addr: addr, MaxRetries: -1, PoolSize: 1, DialerRetries: 1,
		DialTimeout: 500 * time.Millisecond, ReadTimeout: 500 * time.Millisecond,
	})
	defer func() { _ = c.Close() }()
	err := c.Ping(ctx).Err()
	if redis.HasErrorPrefix(err, "NOAUTH") {
		return nil // a test that sets a password gets a server that wants it
	}
	return err
}
