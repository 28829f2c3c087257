package topology

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast/integration/internal/freeport"
	"github.com/holdfast-go/holdfast/integration/server"
)

// launch starts a node with the settings that conf makes for a port and the port of the cluster bus. They are in a
// file, which sentinels need, and which failovers rewrite: a restarted node comes back in the role it had last.
func launch(conf func(port, bus int) string, flags ...string) (*server.Process, error) {
	bin, err := server.Binary()
	if errors.Is(err, server.ErrMissing) {
		return nil, fmt.Errorf("replicas, Sentinel and Cluster need a binary: %w", err)
	}
	if err != nil {
		return nil, err
	}
	return server.Launch(bin, func(dir string, port int) ([]string, error) {
		// By default the bus is at port+10000, where the kernel takes the local ports of outgoing connections from.
		bus, err := freeport.Pick()
		if err != nil {
			return nil, err
		}
		name := filepath.Join(dir, "node.conf")
		text := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\n%s", port, dir, conf(port, bus))
		return append([]string{name}, flags...), os.WriteFile(name, []byte(text), 0o600)
	})
}
