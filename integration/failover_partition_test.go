package integration

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/topology"
)

// A network falls apart: a master and one client are on one side, its replicas, the sentinels and another client on the
// other. The master goes on answering the client with it, as no server can know that it was replaced.

// A border lets connections to a server pass, whatever they carry, until it is closed: then all that is sent disappears.
type border struct {
	server   string
	listener net.Listener
	closed   atomic.Bool
	wg       sync.WaitGroup

	mu    sync.Mutex // guards what follows
	conns []net.Conn
	over  bool
}

func newBorder(t *testing.T, server string) *border {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &border{server: server, listener: listener}
	b.wg.Go(b.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		b.mu.Lock()
		b.over = true
		for _, c := range b.conns {
			_ = c.Close()
		}
		b.mu.Unlock()
		b.wg.Wait()
	})
	return b
}

func (b *border) accept() {
	for {
		client, err := b.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.DialTimeout("tcp", b.server, time.Second)
		if err != nil {
			_ = client.Close()
			continue
		}
		b.mu.Lock()
		b.conns = append(b.conns, client, server)
		if b.over {
			_, _ = client.Close(), server.Close()
		}
		b.mu.Unlock()
		b.wg.Go(func() { b.pass(client, server) })
		b.wg.Go(func() { b.pass(server, client) })
	}
}

func (b *border) pass(from, to net.Conn) {
	defer func() { _ = to.Close() }()
	buf := make([]byte, 1<<14)
	for {
		n, err := from.Read(buf)
		if err == nil && !b.closed.Load() {
			_, err = to.Write(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// divided starts a Sentinel set and returns the border around its master, and a client inside.
func divided(t *testing.T) (s *topology.Sentinel, inside *redis.Client, b *border) {
	t.Helper()
	s = topology.StartSentinel(t, topology.Front(func(addr string) string {
		b = newBorder(t, addr)
		return b.listener.Addr().String()
	}))
	return s, s.Master().Client(), b
}

// With acknowledgement the renewals of a holder beside the old master do not count: it is told when its lease ends, and
// before anybody is granted the name by the new master. Nothing can be acquired from the old one.
func TestIsolatedHolderIsToldBeforeAnotherIsGranted(t *testing.T) {
	notShort(t)
	const lease = 4 * time.Second
	s, inside, around := divided(t)
	name, option := unique(t), holdfast.Replicas(1, 200*time.Millisecond)
	isolated, other := newClient(t, inside), newClient(t, s.Client())
	holds := make(map[string]*holdfast.Hold)
	got := make(map[string]<-chan result)
	for _, kind := range kindsOfHold {
		holds[kind] = take(t, acquirer(isolated, kind, name, option, holdfast.Lease(lease)))
		ch := make(chan result, 1)
		wait := acquirer(other, kind, name, option, holdfast.Lease(lease))
		ctx := within(t, time.Minute)
		go func() {
			h, err := wait(ctx)
			for errors.Is(err, holdfast.ErrUnavailable) && ctx.Err() == nil { // while no replica follows the new master
				h, err = wait(ctx)
			}
			ch <- result{h, err}
		}()
		got[kind] = ch
		inQueue(t, 1, inspector(isolated, kind, name))
	}
	for _, n := range s.Replicas() {
		replicatedTo(t, inside, n.Client())
	}
	cut := time.Now()
	around.closed.Store(true)
	_, err := isolated.Mutex(name+".free", option).TryLock(within(t, 10*time.Second))
	if !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("acquired from a master without replicas: %v", err)
	}
	t.Log(s.Await(s.Nodes()[0]))
	for _, kind := range kindsOfHold {
		k, h := holds[kind], served(t, 20*time.Second, got[kind])
		select {
		case <-k.Done():
			t.Logf("%s: %v after the cut another was granted, %v", kind, time.Since(cut).Round(time.Millisecond), k.Err())
		default:
			t.Errorf("%s: another was granted, the isolated holder believes until %v from now", kind, time.Until(k.Deadline()))
		}
		if !errors.Is(k.Err(), holdfast.ErrLost) || h.Token() <= k.Token() {
			t.Errorf("%s: lost by %v; token %d after %d", kind, k.Err(), h.Token(), k.Token())
		}
		put(t, h)
	}
}

// Without, the isolated holder goes on for ever: both believe, and only the token tells.
func TestIsolatedHolderWithoutAcknowledgementIsToldByItsTokenOnly(t *testing.T) {
	needsFull(t)
	const lease = 4 * time.Second
	s, inside, around := divided(t)
	name := unique(t)
	isolated, other := newClient(t, inside), newClient(t, s.Client())
	held := take(t, isolated.Mutex(name, holdfast.Lease(lease)).Lock)
	for _, n := range s.Replicas() {
		replicatedTo(t, inside, n.Client())
	}
	around.closed.Store(true)
	t.Log(s.Await(s.Nodes()[0]))
	h, err := other.Mutex(name).Lock(within(t, 20*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if !stays(held.Done(), lease) {
		t.Fatalf("the isolated holder was told: %v; this proves nothing", held.Err())
	}
	var v vault
	v.write(h.Token())
	v.write(held.Token())
	if v.refused != 1 {
		t.Errorf("token %d after %d", h.Token(), held.Token())
	}
	put(t, h)
}
