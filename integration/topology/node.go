package topology

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/integration/server"
)

// settle is how long a topology may take to agree on something. It takes some seconds at most; machines for tests
// are slow, and what never comes is told by the message.
const settle = 30 * time.Second

// Node is one server of a topology, or one sentinel.
type Node struct {
	*server.Server
	t     testing.TB
	admin *redis.Client // for the topology's own questions
	name  string
	id    string // in a cluster
	known string // the address by which others know it, if it is not its own
	dead  bool   // killed or frozen: not to be asked
}

// Option changes the nodes of a topology.
type Option func(*options)

type options struct {
	lines []string
	front func(addr string) string
}

// Front has everybody but the test know the first master of a Sentinel set by the address that front makes of its own,
// for example that of a proxy that knows nothing of Redis.
func Front(front func(addr string) string) Option {
	return func(o *options) { o.front = front }
}

// Config adds lines to the settings of every node that holds data, for example "repl-timeout 5".
func Config(lines ...string) Option {
	return func(o *options) { o.lines = append(o.lines, lines...) }
}

// text joins settings, the added ones last, so that they win.
func (o *options) text(lines ...string) string {
	return strings.Join(append(lines, o.lines...), "\n") + "\n"
}

func resolve(opts []Option) *options {
	o := &options{}
	for _, apply := range opts {
		apply(o)
	}
	return o
}

// common are the settings of every node that holds data.
var common = []string{
	`save ""`,
	"appendonly no",
	"enable-debug-command yes",
	"repl-diskless-sync yes",
	"repl-diskless-sync-delay 0",
	"repl-ping-replica-period 1",
}

// startNode starts a node that ends with the test.
func startNode(t testing.TB, name string, conf func(port, bus int) string, flags ...string) *Node {
	t.Helper()
	n := &Node{t: t, name: name}
	n.Server = server.StartWith(t, func([]string) (server.Instance, error) {
		p, err := launch(conf, flags...)
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { n.showLog(p) }) // the server's own cleanup comes later: it runs before this one
		return logKeeper{p}, nil
	})
	n.admin = redis.NewClient(impatient(n.Addr()))
	t.Cleanup(func() { _ = n.admin.Close() })
	return n
}

// logKeeper leaves the directory for showLog.
type logKeeper struct{ *server.Process }

// Stop implements server.Instance.
func (k logKeeper) Stop() error { return k.Kill() }

// showLog shows the end of a log if the test failed, and removes what the node leaves behind.
func (n *Node) showLog(p *server.Process) {
	text, err := os.ReadFile(p.Log())
	if n.t.Failed() && err == nil {
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		n.t.Logf("%v logged:\n%s", n, strings.Join(lines[max(0, len(lines)-15):], "\n"))
	}
	_ = os.RemoveAll(p.Dir())
}

// impatient are the options for somebody who asks again by himself.
func impatient(addr string) *redis.Options {
	return &redis.Options{
		Addr: addr, MaxRetries: -1, PoolSize: 2, DialTimeout: time.Second, DialerRetries: 1,
		ReadTimeout: 2 * time.Second, ContextTimeoutEnabled: true,
	}
}

// String names the node in messages.
func (n *Node) String() string { return n.name + " at " + n.Addr() }

// KnownAs is the address by which others know the node.
func (n *Node) KnownAs() string {
	if n.known != "" {
		return n.known
	}
	return n.Addr()
}

// Direct returns a client of this node alone, the one that the topology asks with itself: it tries everything once.
func (n *Node) Direct() *redis.Client { return n.admin }

// Alive reports whether the node runs: it was neither killed nor frozen by the test.
func (n *Node) Alive() bool { return !n.dead }

// Kill is kill -9. Killing a dead node does nothing.
func (n *Node) Kill() { n.dead = true; n.Server.Kill() }

// Pause freezes the node: others see a node that answers nothing.
func (n *Node) Pause() { n.dead = true; n.Server.Pause() }

// Resume lets a frozen node go on.
func (n *Node) Resume() { n.Server.Resume(); n.dead = false }

// Restart starts a killed node again, on the same address and in the role it had last, with no data.
func (n *Node) Restart() { n.Server.Restart(); n.dead = false }

// role returns "master" or "slave".
func (n *Node) role(ctx context.Context) (string, error) {
	v, err := n.admin.Do(ctx, "ROLE").Slice()
	if err != nil || len(v) == 0 {
		return "", fmt.Errorf("%v: ROLE: %w", n, errors.Join(err))
	}
	role, _ := v[0].(string)
	return role, nil
}

// info returns the fields of a section of INFO.
func (n *Node) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := n.admin.Info(ctx, section).Result()
	if err != nil {
		return nil, fmt.Errorf("%v: INFO: %w", n, err)
	}
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[k] = v
		}
	}
	return fields, nil
}

// linked makes sure that a replica receives its master's stream.
func (n *Node) linked(ctx context.Context) error {
	fields, err := n.info(ctx, "replication")
	switch {
	case err != nil:
		return err
	case fields["role"] != "slave" || fields["master_link_status"] != "up":
		return fmt.Errorf("%v: role %s, link to its master %s", n, fields["role"], fields["master_link_status"])
	}
	return nil
}

// feeds makes sure that a master has n replicas that are in step.
func (n *Node) feeds(ctx context.Context, replicas int) error {
	fields, err := n.info(ctx, "replication")
	if err != nil {
		return err
	}
	online := 0
	for k, v := range fields {
		if strings.HasPrefix(k, "slave") && strings.Contains(v, "state=online") {
			online++
		}
	}
	if fields["role"] != "master" || online != replicas {
		return fmt.Errorf("%v: role %s, %d replicas online instead of %d", n, fields["role"], online, replicas)
	}
	return nil
}

// await asks until the answer is no error, and fails the test if that takes too long.
func await(t testing.TB, what string, every time.Duration, ask func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), settle)
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not within %v: %s: %v", settle, what, err)
		case <-time.After(every):
		}
	}
}

// each asks every node, and returns the first error.
func each(nodes []*Node, ask func(n *Node) error) error {
	for _, n := range nodes {
		if err := ask(n); err != nil {
			return err
		}
	}
	return nil
}
