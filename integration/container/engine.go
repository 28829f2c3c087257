package container

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"github.com/holdfast-go/holdfast/integration/server"
)

const pullDeadline = 3 * time.Minute

// connect returns an error where Docker is not installed; finding out makes
// testcontainers panic.
func connect() (engine *testcontainers.DockerClient, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), actionDeadline)
	defer cancel()
	if engine, err = testcontainers.NewDockerClientWithOpts(ctx); err != nil {
		return nil, err
	}
	_, err = engine.Ping(ctx, client.PingOptions{})
	return engine, err
}

// provide pulls the image unless it is there. To leave that to testcontainers
// would mean minutes of retries on a machine that is offline.
func provide(engine *testcontainers.DockerClient, image string) error {
	ctx, cancel := context.WithTimeout(context.Background(), pullDeadline)
	defer cancel()
	if _, err := engine.ImageInspect(ctx, image); err == nil || !errdefs.IsNotFound(err) {
		return err
	}
	pull, err := engine.ImagePull(ctx, image, client.ImagePullOptions{})
	if err == nil {
		err = errors.Join(pull.Wait(ctx), pull.Close())
	}
	if err != nil {
		return fmt.Errorf("%w: Docker has no image %s and cannot pull it; build one or set HOLDFAST_REDIS_IMAGE: %w",
			server.ErrMissing, image, err)
	}
	return nil
}
