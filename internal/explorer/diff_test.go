package explorer_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/explorer"
)

// clockFromKeys makes the scripts take the time from KEYS[2] and KEYS[3], so that every server runs a
// sequence of calls at the same times.
func clockFromKeys(t *testing.T, source explorer.Source) explorer.Source {
	t.Helper()
	source, err := source.Replace("redis.call('TIME')", "{ KEYS[2], KEYS[3] }")
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// The exploration is worth as much as its server is like Redis: random sequences of calls must give the
// same replies and leave the same hash on both.
func TestServersAgree(t *testing.T) {
	source := clockFromKeys(t, load(t))
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		server := miniredis.RunT(t)
		compare(t, source, server.Addr(), 0)
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		compare(t, source, redisServer(t), 5*time.Second)
	})
}

// redisServer returns the address of a Redis: the one of REDIS_ADDR, or one that ends with the test.
func redisServer(t *testing.T) string {
	t.Helper()
	if addr := os.Getenv("REDIS_ADDR"); addr != "" {
		return addr
	}
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("no REDIS_ADDR and no redis-server")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().(*net.TCPAddr)
	listener.Close()
	server := exec.Command(binary, "--bind", "127.0.0.1", "--port", strconv.Itoa(addr.Port), "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	return addr.String()
}

// compare runs random calls on the explorer's server and on the one at addr. Its own clock goes on while
// the calls' times are made up, so the key's TTL may differ by as much as drift.
func compare(t *testing.T, source explorer.Source, addr string, drift time.Duration) {
	ctx := t.Context()
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer client.Close()
	waitFor(t, client)
	engine, err := explorer.NewEngine(source)
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()

	sequences := 120
	if testing.Short() {
		sequences = 20
	}
	random := rand.New(rand.NewSource(1))
	prefix := fmt.Sprintf("holdfast-explorer-%d:", os.Getpid())
	for n := range sequences {
		key := prefix + strconv.Itoa(n)
		engine.Server.Fields, engine.Server.ExpiresAt = nil, 0
		calls := newCalls(random)
		for range 40 {
			script, argv := calls.next(engine.Server.Fields)
			keys := append([]string{key}, calls.clock()...)
			mine, mineErr := engine.Run(script, keys, argv)
			theirs, theirsErr := client.Eval(ctx, source[script], keys, anys(argv)...).Result()
			if errors.Is(theirsErr, redis.Nil) {
				theirsErr = nil
			}
			want := outcome(script, theirs, theirsErr, client.HGetAll(ctx, key).Val())
			got := outcome(script, mine, mineErr, engine.Server.Fields)
			if got != want {
				t.Fatalf("%s %v at %v:\nexplorer: %s\n%s: %s", script, argv, keys[1:], got, addr, want)
			}
			if !alike(engine, client.PTTL(ctx, key).Val(), drift) {
				t.Fatalf("%s %v at %v: ends at %d, but in %v", script, argv, keys[1:], engine.Server.ExpiresAt, client.PTTL(ctx, key).Val())
			}
		}
		client.Del(ctx, key)
	}
}

func waitFor(t *testing.T, client *redis.Client) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for client.Ping(context.Background()).Err() != nil {
		if time.Now().After(deadline) {
			t.Fatal("the server does not answer")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func alike(engine *explorer.Engine, ttl, drift time.Duration) bool {
	if len(engine.Server.Fields) == 0 {
		return ttl < 0
	}
	difference := time.Duration(engine.Server.ExpiresAt)*time.Millisecond - ttl
	return difference >= 0 && difference <= drift
}

// outcome is a reply and a hash as text. The order of a hash's fields is the server's own affair.
func outcome(script string, reply any, err error, fields map[string]string) string {
	if err != nil {
		return "error " + strings.SplitN(strings.TrimPrefix(err.Error(), "ERR "), " script", 2)[0]
	}
	if list, ok := reply.([]any); ok && script == "inspect" {
		pairs := map[string]any{}
		for i := 2; i+1 < len(list); i += 2 {
			pairs[list[i].(string)] = list[i+1]
		}
		reply = fmt.Sprint(list[:2], pairs)
	}
	var hash []string
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		hash = append(hash, field+"="+fields[field])
	}
	return fmt.Sprint(reply, " ", hash)
}

func anys(list []string) []any {
	var all []any
	for _, s := range list {
		all = append(all, s)
	}
	return all
}

// calls makes up a sequence of calls by a few clients for one name.
type calls struct {
	random   *rand.Rand
	micros   int64
	capacity int
}

func newCalls(random *rand.Rand) *calls {
	return &calls{random: random, micros: 1_796_071_920_277_319 + random.Int63n(1e9), capacity: 1 + random.Intn(3)}
}

func (c *calls) clock() []string {
	return []string{strconv.FormatInt(c.micros/1e6, 10), strconv.FormatInt(c.micros%1e6, 10)}
}

func (c *calls) owner() string {
	return fmt.Sprintf("%022d@host:%d", c.random.Intn(3), c.random.Intn(3))
}

func (c *calls) pick(choices ...string) string { return choices[c.random.Intn(len(choices))] }

func (c *calls) weight() string { return strconv.Itoa(1 + c.random.Intn(c.capacity)) }

// token is what a release or renewal brings back: mostly nothing, sometimes something ahead of the time.
func (c *calls) token() string {
	return c.pick("0", "0", strconv.FormatInt(c.micros-100, 10), strconv.FormatInt(c.micros+c.random.Int63n(5e6), 10))
}

// next makes up a call for a name of which so much is written.
func (c *calls) next(hash map[string]string) (script string, argv []string) {
	steps := []int64{100, 1000, 1_500_000, 4_000_000}
	c.micros += 50 + c.random.Int63n(steps[c.random.Intn(len(steps))])
	capacity := strconv.Itoa(c.capacity)
	const inbox = "holdfast:inbox:"
	switch c.random.Intn(10) {
	case 0, 1, 2, 3:
		depth, lease, weight, lone := c.pick("1", "1", "1", "2", "0"), c.pick("30000", "200", "100"), c.weight(), ""
		if depth == "1" && c.random.Intn(3) > 0 {
			lone = weight + " 1 +" + lease + " "
		}
		return "acquire", []string{
			"h:" + c.owner(), lone, c.pick("31000", "1200"),
			strings.Join([]string{weight, capacity, depth, lease, c.pick("3000", "3000", "0"), c.pick("3000", "200"), inbox}, " "),
		}
	case 4, 5, 6:
		depth, tomb, alone := c.pick("0", "0", "0", "1"), c.pick("0", "0", "30000", "500"), "0"
		next := c.random.Intn(3) == 0
		if depth == "0" && tomb == "0" && !next && c.random.Intn(3) > 0 {
			alone = "1"
		}
		argv = []string{"h:" + c.owner(), alone, strings.Join([]string{depth, c.weight(), tomb, c.token(), "0", inbox}, " ")}
		if next {
			argv = append(argv, c.owner(), strings.Join([]string{c.weight(), capacity, "3000", "3000"}, " "))
		}
		return "release", argv
	case 7:
		if c.random.Intn(4) == 0 {
			return "release", []string{"h:" + c.owner(), "0", "0 1 0 0 1 " + inbox}
		}
		return "inspect", nil
	}
	h := "h:" + c.owner()
	terms := strings.Join([]string{c.weight(), c.pick("1", "2"), "+" + c.pick("30000", "200"), strconv.FormatInt(c.micros, 10)}, " ")
	if words := strings.Fields(hash[h]); len(words) >= 4 && c.random.Intn(4) > 0 { // as its owner may have written it
		words[2] = c.pick(words[2], "+200")
		if !strings.HasPrefix(words[2], "+") {
			words[2] = "+30000"
		}
		terms = strings.Join(words[:4], " ")
	}
	return c.pick("renew", "renewals"), []string{h, terms, c.pick("31000", "1200"), c.pick("", c.token())}
}
