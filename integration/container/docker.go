package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"strconv"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	module "github.com/testcontainers/testcontainers-go/modules/redis"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/holdfast-go/holdfast/integration/internal/freeport"
	"github.com/holdfast-go/holdfast/integration/server"
)

const (
	startDeadline  = time.Minute
	actionDeadline = 20 * time.Second // for one request to the engine
)

var redisPort = network.MustParsePort("6379/tcp")

// docker is a server in a container.
type docker struct {
	addr      string
	container *module.RedisContainer
	engine    *testcontainers.DockerClient
}

func launch(args []string) (server.Instance, error) {
	engine, err := connect()
	if err != nil {
		return nil, fmt.Errorf("%w: Docker does not answer; start it, or install redis-server: %w", server.ErrMissing, err)
	}
	if err := provide(engine, Image()); err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	d := &docker{engine: engine}
	for range 5 {
		if err = d.run(args); err == nil {
			return d, nil
		}
		err = errors.Join(err, d.remove()) // perhaps somebody took the port
	}
	return nil, errors.Join(err, engine.Close())
}

// run starts a container on a port of its own choice: one that the engine chose
// would change with every Restart.
func (d *docker) run(args []string) error {
	port, err := freeport.Pick()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startDeadline)
	defer cancel()
	d.container, err = module.Run(ctx, Image(),
		testcontainers.WithLogger(log.New(io.Discard, "", 0)),
		testcontainers.WithCmd(append([]string{"--save", "", "--appendonly", "no"}, args...)...),
		testcontainers.WithHostConfigModifier(func(c *container.HostConfig) {
			c.PortBindings = network.PortMap{redisPort: {{HostPort: strconv.Itoa(port)}}}
		}),
		// Instead of the module's own strategy, which also dials the one address
		// that testcontainers takes for the engine's.
		testcontainers.WithWaitStrategy(wait.ForLog("Ready to accept connections")))
	if err != nil {
		return err
	}
	host, err := d.container.Host(ctx)
	if err != nil {
		return err
	}
	d.addr, err = awaitAny(ctx, address(host, port), address("127.0.0.1", port))
	return err
}

// Addr implements server.Instance.
func (d *docker) Addr() string { return d.addr }

// Pause implements server.Instance.
func (d *docker) Pause() error {
	return d.do(func(ctx context.Context, id string) error {
		_, err := d.engine.ContainerPause(ctx, id, client.ContainerPauseOptions{})
		return err
	})
}

// Resume implements server.Instance.
func (d *docker) Resume() error {
	return d.do(func(ctx context.Context, id string) error {
		_, err := d.engine.ContainerUnpause(ctx, id, client.ContainerUnpauseOptions{})
		return err
	})
}

// Kill implements server.Instance. It returns when the container is down.
func (d *docker) Kill() error {
	return d.do(func(ctx context.Context, id string) error {
		// Engines differ in whether they can kill what is paused, and complain
		// about the unpausing of what is not.
		_, _ = d.engine.ContainerUnpause(ctx, id, client.ContainerUnpauseOptions{})
		wait := d.engine.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
		_, err := d.engine.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: "KILL"})
		if err != nil && !errdefs.IsConflict(err) { // a conflict: it does not run
			return err
		}
		select {
		case <-wait.Result:
			return nil
		case err := <-wait.Error:
			return err
		}
	})
}

// Restart implements server.Instance.
func (d *docker) Restart() error {
	if err := d.Kill(); err != nil {
		return err
	}
	return d.do(func(ctx context.Context, id string) error {
		if _, err := d.engine.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
			return err
		}
		_, err := awaitAny(ctx, d.addr)
		return err
	})
}

// Stop implements server.Instance.
func (d *docker) Stop() error { return errors.Join(d.remove(), d.engine.Close()) }

func (d *docker) remove() error {
	if d.container == nil {
		return nil
	}
	return d.do(func(ctx context.Context, id string) error {
		_, err := d.engine.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if errdefs.IsNotFound(err) {
			return nil
		}
		return err
	})
}

func (d *docker) do(action func(ctx context.Context, id string) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), actionDeadline)
	defer cancel()
	return action(ctx, d.container.GetContainerID())
}
