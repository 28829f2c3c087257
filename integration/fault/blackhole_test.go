package fault_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/integration/fault"
	"github.com/holdfast-go/holdfast/integration/server"
)

func TestBlackHoleSwallowsOnlyWhatItIsMeantFor(t *testing.T) {
	t.Parallel()
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			t.Parallel()
			p, direct, key := prefixed(t)
			c := through(t, p, func(o *redis.Options) { o.Protocol = protocol })
			ps := c.Subscribe(t.Context(), key)
			t.Cleanup(func() { _ = ps.Close() })
			if _, err := ps.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
			p.Blackhole(fault.ToClient, fault.Subscribers)
			publish(t, direct, key, "lost")
			if err := c.Exists(t.Context(), key).Err(); err != nil {
				t.Fatalf("a command on another connection: %v", err)
			}
			if msg, err := ps.ReceiveTimeout(t.Context(), 50*time.Millisecond); err == nil {
				t.Fatalf("received %v", msg)
			}
			p.Heal()
			publish(t, direct, key, "found")
			msg, err := ps.ReceiveTimeout(t.Context(), 5*time.Second)
			if m, ok := msg.(*redis.Message); !ok || m.Payload != "found" {
				t.Fatalf("received %v, %v", msg, err)
			}
		})
	}
}

func publish(t *testing.T, c *redis.Client, channel, message string) {
	t.Helper()
	if n, err := c.Publish(t.Context(), channel, message).Result(); n != 1 || err != nil {
		t.Fatalf("PUBLISH reached %d, %v", n, err)
	}
}

func TestBlackHoleHidesTheEndOfEitherSide(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	p := fault.NewProxy(t, s.Addr())
	conn := dial(t, p.Addr())
	send(t, conn, "PING\r\n")
	expect(t, conn, "+PONG\r\n")
	subscriber := dial(t, p.Addr())
	send(t, subscriber, "SUBSCRIBE ch\r\n")
	expect(t, subscriber, "*3\r\n$9\r\nsubscribe\r\n$2\r\nch\r\n:1\r\n")

	p.Blackhole(fault.Both, fault.Everyone)
	_ = subscriber.Close()
	send(t, conn, "SET k 1\r\n")
	expectSilence(t, conn)
	c := s.Client()
	if err := c.Get(t.Context(), "k").Err(); err == nil {
		t.Fatal("the server got a request through a black hole")
	}
	publish(t, c, "ch", "to nobody") // the server still believes in the subscriber
	s.Kill()
	expectSilence(t, conn)

	p.Heal()
	expectEnd(t, conn)
	eventually(t, "all connections are gone", func() bool { return len(p.Conns()) == 0 })
}

func TestConnectionThatLostARequestStaysDeadAfterHeal(t *testing.T) {
	t.Parallel()
	p, direct, key := prefixed(t)
	conn := dial(t, p.Addr())
	send(t, conn, "EXISTS "+key+"\r\n")
	expect(t, conn, ":0\r\n")
	seen := p.Count(fault.Any())
	p.Blackhole(fault.ToServer, fault.Everyone)
	send(t, conn, "ECHO lost\r\n")
	eventually(t, "the proxy has it", func() bool { return seen.Hits() == 1 })
	expectSilence(t, conn)
	p.Heal()
	send(t, conn, "SET "+key+" 1\r\n")
	expectSilence(t, conn) // an answer would pass for that to ECHO
	if n, err := direct.Exists(t.Context(), key).Result(); n != 0 || err != nil {
		t.Fatalf("EXISTS: %d, %v", n, err)
	}
}

func TestConnsTellSubscribersApart(t *testing.T) {
	t.Parallel()
	p, _, key := prefixed(t)
	plain, subscriber := dial(t, p.Addr()), dial(t, p.Addr())
	send(t, subscriber, "SUBSCRIBE "+key+"\r\n")
	send(t, plain, "ECHO a\r\n")
	expect(t, plain, "$1\r\na\r\n")
	eventually(t, "one of two has subscribed", func() bool {
		conns := p.Conns()
		subscribed := 0
		for _, c := range conns {
			if c.Subscribed && c.RemoteAddr == subscriber.LocalAddr().String() {
				subscribed++
			}
		}
		return len(conns) == 2 && subscribed == 1
	})
}
