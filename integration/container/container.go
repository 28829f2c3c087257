// Package container runs a test's server in Docker.
//
// It is a package of its own because it compiles a Docker client. Importing it
// also lets server.Start and server.Shared fall back to a container on machines
// without a server binary.
package container

import (
	"cmp"
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/integration/server"
)

func init() {
	// Every container is removed by the test that started it. The reaper, which
	// would remove them after a crash as well, is a second image to pull, and
	// without it nothing would start at all.
	if os.Getenv("TESTCONTAINERS_RYUK_DISABLED") == "" {
		_ = os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
	}
	server.RegisterFallback(launch)
}

// Image returns the image that Start runs: HOLDFAST_REDIS_IMAGE, by default
// redis:8. Any with the entry point of the official images will do.
func Image() string { return cmp.Or(os.Getenv("HOLDFAST_REDIS_IMAGE"), "redis:8") }

// Start is server.Start with the server in a container. Pause and Resume are
// docker pause and unpause. Without Docker, or without the image and a way to
// pull it, the test is skipped, or fails if CI=true.
func Start(t testing.TB, opts ...server.Option) *server.Server {
	t.Helper()
	return server.StartWith(t, launch, opts...)
}
