package integration

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/worker"
)

// An actor is another process that acquires and releases what a test tells it to, line by line.
type actor struct {
	*worker.Process
	t testing.TB
}

func init() { worker.Register("actor", act) }

// hire starts an actor on the server at addr.
func hire(t testing.TB, addr string) *actor {
	t.Helper()
	return &actor{worker.Spawn(t, "actor", addr), t}
}

// tell sends a command: "acquire ID KIND NAME LEASE", "release ID" or "cancel ID".
func (a *actor) tell(format string, args ...any) {
	a.t.Helper()
	if _, err := fmt.Fprintf(a.Stdin, format+"\n", args...); err != nil {
		a.t.Fatalf("actor: %v", err)
	}
}

// hear waits for a line that starts with the words.
func (a *actor) hear(words string) string {
	a.t.Helper()
	late := time.After(20 * time.Second)
	for {
		select {
		case line, ok := <-a.Lines():
			if !ok {
				a.t.Fatalf("the actor ended before it said %q", words)
			}
			if strings.HasPrefix(line, words) {
				return line
			}
		case <-late:
			a.t.Fatalf("the actor never said %q", words)
		}
	}
}

// acquirer is the method that a kind acquires with: "mutex", "fair", "read", "write", or "sem3" and the like for one
// of three.
func acquirer(client *holdfast.Client, kind, name string, options ...holdfast.LockOption) func(context.Context) (*holdfast.Hold, error) {
	switch kind {
	case "mutex":
		return client.Mutex(name, options...).Lock
	case "fair":
		return client.FairLock(name, options...).Lock
	case "read":
		return client.RWLock(name, options...).RLock
	case "write":
		return client.RWLock(name, options...).Lock
	}
	var capacity int
	if _, err := fmt.Sscanf(kind, "sem%d", &capacity); err != nil {
		panic("no such kind: " + kind)
	}
	return func(ctx context.Context) (*holdfast.Hold, error) {
		return client.Semaphore(name, capacity, options...).Acquire(ctx, 1)
	}
}

// act is the actor's process.
func act(args []string) error {
	client, rdb, err := workerClient(&redis.Options{Addr: args[0]})
	if err != nil {
		return err
	}
	defer func() { _ = rdb.Close() }()
	defer func() { _ = closeWorker(client) }()

	var mu sync.Mutex // guards the maps
	holds := map[string]*holdfast.Hold{}
	cancels := map[string]context.CancelFunc{}
	say := func(format string, args ...any) { fmt.Fprintf(os.Stdout, format+"\n", args...) }
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		id := words[1]
		switch words[0] {
		case "acquire":
			lease, err := time.ParseDuration(words[4])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(context.Background())
			mu.Lock()
			cancels[id] = cancel
			mu.Unlock()
			go func() {
				h, err := acquirer(client, words[2], words[3], holdfast.Lease(lease))(ctx)
				if err != nil {
					say("failed %s %v", id, err)
					return
				}
				mu.Lock()
				holds[id] = h
				mu.Unlock()
				say("granted %s %d", id, h.Token())
			}()
		case "release":
			mu.Lock()
			h := holds[id]
			mu.Unlock()
			say("released %s %v", id, h.Release(context.Background()))
		case "cancel":
			mu.Lock()
			cancels[id]()
			mu.Unlock()
		}
	}
	return lines.Err()
}
