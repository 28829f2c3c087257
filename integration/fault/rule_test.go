package fault_test

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/integration/fault"
)

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func TestCommandWithDroppedReplyWasExecuted(t *testing.T) {
	t.Parallel()
	p, direct, key := prefixed(t)
	rule := p.DropReplies(1, fault.All(fault.Command("incr"), fault.ArgContains(key)))
	c := through(t, p)
	if err := c.Incr(t.Context(), key).Err(); !isTimeout(err) {
		t.Fatalf("INCR: %v, want a timeout", err)
	}
	if n, err := direct.Get(t.Context(), key).Int(); n != 1 || err != nil {
		t.Fatalf("GET: %d, %v", n, err)
	}
	if n, err := c.Incr(t.Context(), key).Result(); n != 2 || err != nil {
		t.Fatalf("second INCR: %d, %v", n, err)
	}
	if rule.Hits() != 1 || rule.Answered() != 1 {
		t.Fatalf("%d hits, %d answered", rule.Hits(), rule.Answered())
	}
}

func TestConnectionIsMuteAfterADroppedReply(t *testing.T) {
	t.Parallel()
	p, direct, key := prefixed(t)
	p.DropReplies(1, fault.Command("INCR"))
	conn := dial(t, p.Addr())
	send(t, conn, "ECHO a\r\nINCR "+key+"\r\nINCR "+key+"\r\n")
	expect(t, conn, "$1\r\na\r\n")
	eventually(t, "both INCR ran", func() bool {
		n, _ := direct.Get(t.Context(), key).Int()
		return n == 2
	})
	expectSilence(t, conn) // the second reply would pass for the first
}

func TestDropRepliesAndCloseHangsUpAfterExecution(t *testing.T) {
	t.Parallel()
	p, direct, key := prefixed(t)
	p.DropRepliesAndClose(1, fault.Command("INCR"))
	conn := dial(t, p.Addr())
	send(t, conn, "INCR "+key+"\r\n")
	expectEnd(t, conn)
	if n, err := direct.Get(t.Context(), key).Int(); n != 1 || err != nil {
		t.Fatalf("GET: %d, %v", n, err)
	}
}

func TestDelayedRequestRunsAfterItsSenderHasGone(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*fault.Proxy, net.Conn){
		"closed": func(_ *fault.Proxy, conn net.Conn) { _ = conn.Close() },
		"cut":    func(p *fault.Proxy, _ net.Conn) { p.Cut() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, direct, key := prefixed(t)
			zombie := p.DelayRequests(1, 300*time.Millisecond, fault.Command("INCR"))
			conn := dial(t, p.Addr())
			send(t, conn, "INCR "+key+"\r\n")
			eventually(t, "the proxy has it", func() bool { return zombie.Hits() == 1 })
			leave(p, conn)
			if err := direct.Get(t.Context(), key).Err(); !errors.Is(err, redis.Nil) {
				t.Fatalf("it ran early: %v", err)
			}
			eventually(t, "it ran", func() bool { return zombie.Answered() == 1 })
			if n, err := direct.Get(t.Context(), key).Int(); n != 1 || err != nil {
				t.Fatalf("GET: %d, %v", n, err)
			}
			eventually(t, "the connection is gone", func() bool { return len(p.Conns()) == 0 })
		})
	}
}

func TestDelayedReplyBelongsToAnExecutedCommand(t *testing.T) {
	t.Parallel()
	p, direct, key := prefixed(t)
	rule := p.DelayReplies(1, 300*time.Millisecond, fault.Command("INCR"))
	conn := dial(t, p.Addr())
	start := time.Now()
	send(t, conn, "INCR "+key+"\r\nECHO a\r\n")
	eventually(t, "it ran", func() bool { return rule.Answered() == 1 })
	if n, err := direct.Get(t.Context(), key).Int(); n != 1 || err != nil {
		t.Fatalf("GET: %d, %v", n, err)
	}
	expect(t, conn, ":1\r\n$1\r\na\r\n")
	if took := time.Since(start); took < 300*time.Millisecond {
		t.Fatalf("the reply came after %v", took)
	}
}

func TestDelayCountsFromArrivalNotFromTheCommandBefore(t *testing.T) {
	t.Parallel()
	p, _, key := prefixed(t)
	p.DelayRequests(-1, 100*time.Millisecond, fault.Any())
	p.DelayReplies(-1, 100*time.Millisecond, fault.Any())
	conn := dial(t, p.Addr())
	start := time.Now()
	var sent, want string
	for range 50 { // 10 s if each waited for the one before
		sent += "EXISTS " + key + "\r\n"
		want += ":0\r\n"
	}
	send(t, conn, sent)
	expect(t, conn, want)
	if took := time.Since(start); took < 200*time.Millisecond || took > 2*time.Second {
		t.Fatalf("took %v", took)
	}
}

func TestShaMatchesSumAndBody(t *testing.T) {
	t.Parallel()
	p, _, key := prefixed(t)
	script := redis.NewScript("return redis.call('INCR', KEYS[1])")
	mine, other := p.Count(fault.Sha(script.Hash())), p.Count(fault.Sha("0000"))
	all := p.Count(fault.Script())
	c := through(t, p)
	if err := script.Eval(t.Context(), c, []string{key}).Err(); err != nil {
		t.Fatal(err)
	}
	if err := script.EvalSha(t.Context(), c, []string{key}).Err(); err != nil {
		t.Fatal(err)
	}
	if mine.Hits() != 2 || all.Hits() != 2 || other.Hits() != 0 {
		t.Fatalf("hits: %d, %d, %d", mine.Hits(), all.Hits(), other.Hits())
	}
}

func TestRemovedRuleSparesLaterCommands(t *testing.T) {
	t.Parallel()
	p, _, key := prefixed(t)
	rule := p.DropReplies(-1, fault.Command("EXISTS"))
	rule.Remove()
	if err := through(t, p).Exists(t.Context(), key).Err(); err != nil {
		t.Fatal(err)
	}
	if rule.Hits() != 0 {
		t.Fatalf("%d hits", rule.Hits())
	}
}
