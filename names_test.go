package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

// onServers runs a test on the embedded server and on a real one.
func onServers(t *testing.T, test func(t *testing.T, rdb *redis.Client)) {
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		mini := miniredis.RunT(t)
		mini.ClockTTL(true)
		test(t, connect(t, &redis.Options{Addr: mini.Addr()}))
	})
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		test(t, connect(t, &redis.Options{Network: "unix", Addr: startRedis(t)}))
	})
}

func connect(t *testing.T, o *redis.Options) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// startRedis runs a server on a socket of its own.
func startRedis(t *testing.T) string {
	t.Helper()
	bin := os.Getenv("HOLDFAST_SERVER")
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil && bin == "" {
			bin = path
		}
	}
	if bin == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("no redis-server or valkey-server on the PATH")
		}
		t.Skip("no redis-server or valkey-server on the PATH")
	}
	dir, err := os.MkdirTemp("", "hf") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	cmd := exec.Command(bin, "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	})
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			_ = conn.Close()
			return socket
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not start: %v", bin, err)
		}
	}
}

func newClient(t *testing.T, rdb redis.UniversalClient, options ...holdfast.Option) *holdfast.Client {
	t.Helper()
	client, err := holdfast.New(rdb, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return client
}

// names lists, sorted.
func names(t *testing.T, c *holdfast.Client, pattern string) []string {
	t.Helper()
	var list []string
	for e, err := range c.Names(t.Context(), pattern) {
		if err != nil {
			t.Fatalf("names %q: %v", pattern, err)
		}
		list = append(list, e.Kind+" "+e.Name)
	}
	slices.Sort(list)
	return list
}

type locker interface {
	Lock(ctx context.Context) (*holdfast.Hold, error)
}

func lock(t *testing.T, l locker) *holdfast.Hold {
	t.Helper()
	h, err := l.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Release(context.Background()) })
	return h
}

func TestNamesOfEveryKindAreListedByPattern(t *testing.T) {
	onServers(t, func(t *testing.T, rdb *redis.Client) {
		c := newClient(t, rdb)
		odd := "\xff\x00 ü\n*"
		lock(t, c.Mutex("orders:1"))
		lock(t, c.Mutex("orders:mutex:2"))
		lock(t, c.FairLock("orders:1"))
		lock(t, c.RWLock("config"))
		lock(t, c.Mutex(odd))
		acquire(t, c.Semaphore("api", 3), 2)
		// What is not ours is not listed, whatever it is called.
		rdb.HSet(t.Context(), "holdfast:other:orders:1", "a", "b")
		rdb.Set(t.Context(), "holdfast:mutex:string", "a", 0)
		lock(t, newClient(t, rdb, holdfast.Prefix("holdfastX")).Mutex("elsewhere"))

		all := []string{"fair orders:1", "mutex " + odd, "mutex orders:1", "mutex orders:mutex:2", "rw config", "sem api"}
		slices.Sort(all)
		for pattern, want := range map[string][]string{
			"":             all,
			"*":            all,
			"orders:?":     {"fair orders:1", "mutex orders:1"},
			"*:[0-9]":      {"fair orders:1", "mutex orders:1", "mutex orders:mutex:2"},
			"api":          {"sem api"},
			"?\x00 ü*\\*":  {"mutex " + odd},
			"nobody's*":    nil,
			"mutex:string": nil,
		} {
			if got := names(t, c, pattern); !slices.Equal(got, want) {
				t.Errorf("names %q: %q, want %q", pattern, got, want)
			}
		}
	})
}

func TestGlobCharactersInThePrefixStandForThemselves(t *testing.T) {
	onServers(t, func(t *testing.T, rdb *redis.Client) {
		odd := newClient(t, rdb, holdfast.Prefix(`a*[b]?\:`))
		lock(t, odd.Mutex("mine"))
		lock(t, newClient(t, rdb, holdfast.Prefix(`aXbY\:`)).Mutex("theirs"))
		for _, pattern := range []string{"", "mi*"} {
			if got := names(t, odd, pattern); !slices.Equal(got, []string{"mutex mine"}) {
				t.Errorf("names %q: %q", pattern, got)
			}
		}
	})
}

func TestManyNamesAreListedOnce(t *testing.T) {
	onServers(t, func(t *testing.T, rdb *redis.Client) {
		c := newClient(t, rdb)
		var want []string
		_, err := rdb.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
			for i := range 1500 {
				pipe.HSet(t.Context(), fmt.Sprint("holdfast:mutex:n", i), "v", 1)
				want = append(want, fmt.Sprint("mutex n", i))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(want)
		if got := names(t, c, ""); !slices.Equal(got, want) {
			t.Errorf("%d names instead of %d", len(got), len(want))
		}
		n := 0
		for _, err := range c.Names(t.Context(), "") {
			if n++; err != nil || n == 3 {
				break
			}
		}
		if n != 3 {
			t.Errorf("a loop that ends after 3 saw %d", n)
		}
	})
}

func TestInspectOfAnEntryIsThatOfItsPrimitive(t *testing.T) {
	onServers(t, func(t *testing.T, rdb *redis.Client) {
		c := newClient(t, rdb, holdfast.Label("me"))
		want := map[string]int64{
			"mutex": lock(t, c.Mutex("x")).Token(),
			"fair":  lock(t, c.FairLock("x")).Token(),
			"rw":    lock(t, c.RWLock("x")).Token(),
			"sem":   acquire(t, c.Semaphore("x", 2), 2).Token(),
		}
		for e, err := range c.Names(t.Context(), "x") {
			if err != nil {
				t.Fatal(err)
			}
			s, err := c.Inspect(t.Context(), e)
			if err != nil || len(s.Holders) != 1 || s.Holders[0].Token != want[e.Kind] || s.Holders[0].Label != "me" {
				t.Errorf("%v: %+v, %v", e, s, err)
			}
			delete(want, e.Kind)
		}
		if len(want) > 0 {
			t.Errorf("not listed: %v", want)
		}
		if _, err := c.Inspect(t.Context(), holdfast.Entry{Kind: "list", Name: "x"}); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("an unknown kind: %v", err)
		}
	})
}

func acquire(t *testing.T, s *holdfast.Semaphore, n int) *holdfast.Hold {
	t.Helper()
	h, err := s.Acquire(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Release(context.Background()) })
	return h
}

// firstError ranges until an error comes.
func firstError(ctx context.Context, c *holdfast.Client) error {
	for _, err := range c.Names(ctx, "") {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestNamesEndWithTheirContextAndTheirClient(t *testing.T) {
	t.Parallel()
	mini := miniredis.RunT(t)
	c := newClient(t, connect(t, &redis.Options{Addr: mini.Addr()}))
	cause := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := firstError(ctx, c); !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
		t.Errorf("with an ended context: %v", err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := firstError(t.Context(), c); !errors.Is(err, holdfast.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestNamesDoNotWaitForARedisThatHangs(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connects, and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	rdb := connect(t, &redis.Options{Addr: silent.Addr().String(), ReadTimeout: 10 * time.Second, MaxRetries: -1})
	c := newClient(t, rdb)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	err = firstError(ctx, c)
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("error: %v", err)
	}
	if took := time.Since(began); took > 2300*time.Millisecond {
		t.Errorf("it took %v", took)
	}
}

func TestNamesTellWhatRedisDenies(t *testing.T) {
	t.Parallel()
	admin := connect(t, &redis.Options{Network: "unix", Addr: startRedis(t)})
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "blind", "on", ">pw", "~*", "&*", "+@all", "-scan").Err(); err != nil {
		t.Fatal(err)
	}
	o := *admin.Options()
	o.Username, o.Password = "blind", "pw"
	err := firstError(t.Context(), newClient(t, connect(t, &o)))
	if err == nil || !errors.Is(err, holdfast.ErrUnavailable) || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("error: %v", err)
	}

	dead := newClient(t, connect(t, &redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1}))
	if err := firstError(t.Context(), dead); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("without a server: %v", err)
	}
}

func ExampleClient_Names() {
	mini, err := miniredis.Run() // your Redis
	if err != nil {
		panic(err)
	}
	defer mini.Close()
	rdb := redis.NewClient(&redis.Options{Addr: mini.Addr()})
	defer rdb.Close()
	client, err := holdfast.New(rdb, holdfast.Label("web-1"))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	defer client.Close(ctx)
	hold, err := client.Mutex("orders:42").Lock(ctx)
	if err != nil {
		panic(err)
	}
	defer hold.Release(ctx)

	for entry, err := range client.Names(ctx, "orders:*") {
		if err != nil {
			panic(err)
		}
		state, err := client.Inspect(ctx, entry)
		if err != nil {
			panic(err)
		}
		for _, h := range state.Holders {
			fmt.Printf("%s %s is held by %s\n", entry.Kind, entry.Name, h.Label)
		}
	}
	// Output: mutex orders:42 is held by web-1
}
