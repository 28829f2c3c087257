package fault_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/integration/fault"
	"github.com/holdfast-go/holdfast/integration/server"
)

func TestEveryReplyTypePassesUnchanged(t *testing.T) {
	t.Parallel()
	s := server.Start(t) // of its own, for DEBUG
	p := fault.NewProxy(t, s.Addr())
	for _, protocol := range []string{"2", "3"} {
		seen := p.Count(fault.Command("DEBUG", "ECHO", "NOSUCH"))
		commands := "HELLO " + protocol + "\r\n"
		kinds := []string{"string", "integer", "double", "null", "array", "set", "map", "attrib", "push", "verbatim", "true", "false", "bignum"}
		for _, kind := range kinds {
			commands += "DEBUG PROTOCOL " + kind + "\r\n"
		}
		// An error, an unknown key, words that hold line ends, and an empty request.
		commands += "NOSUCH\r\n*2\r\n$3\r\nGET\r\n$4\r\nno\r\n\r\n\r\n*2\r\n$4\r\nECHO\r\n$0\r\n\r\n"
		end := "$4\r\nlast\r\n"
		conversation := func(addr string) []byte {
			conn := dial(t, addr)
			send(t, conn, commands+"ECHO last\r\n")
			_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
			var got []byte
			for b := make([]byte, 1); !bytes.HasSuffix(got, []byte(end)); got = append(got, b...) {
				if _, err := io.ReadFull(conn, b); err != nil {
					t.Fatalf("after %q: %v", got, err)
				}
			}
			return got[bytes.Index(got, []byte("modules")):] // before it, HELLO's reply names the connection's id
		}
		direct, proxied := conversation(s.Addr()), conversation(p.Addr())
		if !bytes.Equal(direct, proxied) {
			t.Fatalf("RESP%s: direct %q\nproxied %q", protocol, direct, proxied)
		}
		eventually(t, "every command found its reply", func() bool {
			return seen.Answered() == len(kinds)+3
		})
		seen.Remove()
	}
}

func TestRepliesStayWithTheirCommands(t *testing.T) {
	t.Parallel()
	p, _, _ := prefixed(t)
	for i := range 10 { // commands held back in all places, some of them twice
		p.DelayReplies(-1, time.Duration(i)*time.Millisecond, fault.ArgContains(fmt.Sprintf("-%d-", i)))
		p.DelayRequests(-1, time.Duration(10-i)*time.Millisecond, fault.ArgContains(fmt.Sprintf("-%d-", i)))
	}
	c := through(t, p, func(o *redis.Options) { o.PoolSize = 5; o.ReadTimeout = 5 * time.Second })
	var wg sync.WaitGroup
	for g := range 20 {
		wg.Go(func() {
			for i := range 10 {
				pipe := c.Pipeline()
				for j := range 5 {
					pipe.Echo(t.Context(), fmt.Sprintf("%d-%d-%d", g, (i+j)%10, j))
				}
				cmds, err := pipe.Exec(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				for _, cmd := range cmds {
					if got := cmd.(*redis.StringCmd).Val(); got != cmd.Args()[1] {
						t.Errorf("ECHO %v answered %s", cmd.Args()[1], got)
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestCutEndsConnectionsAndRefuseKeepsNewOnesOut(t *testing.T) {
	t.Parallel()
	p, _, key := prefixed(t)
	conn := dial(t, p.Addr())
	send(t, conn, "EXISTS "+key+"\r\n")
	expect(t, conn, ":0\r\n")
	p.Refuse(true)
	send(t, conn, "EXISTS "+key+"\r\n")
	expect(t, conn, ":0\r\n") // refusal spares what exists
	p.Cut()
	expectEnd(t, conn)
	if err := through(t, p).Exists(t.Context(), key).Err(); err == nil {
		t.Fatal("a refused client got an answer")
	}
	p.Heal()
	if err := through(t, p).Exists(t.Context(), key).Err(); err != nil {
		t.Fatal(err)
	}
}

func TestServerThatIsDownClosesTheClient(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	p := fault.NewProxy(t, s.Addr())
	conn := dial(t, p.Addr())
	send(t, conn, "PING\r\n")
	expect(t, conn, "+PONG\r\n")
	s.Kill()
	expectEnd(t, conn)
	expectEnd(t, dial(t, p.Addr()))
	s.Restart()
	conn = dial(t, p.Addr())
	send(t, conn, "PING\r\n")
	expect(t, conn, "+PONG\r\n")
}

func TestCommandSentToAFrozenServerRunsAfterTheClientHasLeft(t *testing.T) {
	t.Parallel()
	s := server.Start(t)
	p := fault.NewProxy(t, s.Addr())
	conn := dial(t, p.Addr())
	send(t, conn, "PING\r\n")
	expect(t, conn, "+PONG\r\n")
	set := p.Count(fault.Command("SET"))
	s.Pause()
	send(t, conn, "SET k 1\r\n")
	eventually(t, "the proxy has it", func() bool { return set.Hits() == 1 })
	_ = conn.Close()
	s.Resume()
	eventually(t, "it ran", func() bool { return set.Answered() == 1 })
	if err := s.Client().Get(context.Background(), "k").Err(); err != nil {
		t.Fatal(err)
	}
}
