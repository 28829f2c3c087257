package integration

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/internal/conformance"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Run(t, sharedClient)
}

func TestConformanceWithoutASubscription(t *testing.T) {
	t.Parallel()
	conformance.Run(t, sharedClient, holdfast.PollOnly())
}

func TestConformanceWithRESP2(t *testing.T) {
	t.Parallel()
	conformance.Run(t, func(t testing.TB) redis.UniversalClient {
		return server.Shared(t).Client(func(o *redis.Options) { o.Protocol = 2 })
	})
}

func sharedClient(t testing.TB) redis.UniversalClient { return server.Shared(t).Client() }
