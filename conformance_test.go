package holdfast_test

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conformance"
)

// The embedded server must do for a first run and for users' tests. Real servers: see the integration module.
func TestConformance(t *testing.T) {
	t.Parallel()
	mini := miniredis.NewMiniRedis()
	mini.ClockTTL(true)
	if err := mini.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(mini.Close)
	conformance.Run(t, func(t testing.TB) redis.UniversalClient {
		rdb := redis.NewClient(&redis.Options{Addr: mini.Addr()})
		t.Cleanup(func() { _ = rdb.Close() })
		return rdb
	})
}
