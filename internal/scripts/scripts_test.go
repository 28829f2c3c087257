package scripts_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/scripts"
	"github.com/holdfast-go/holdfast/internal/tenure"
)

// Proxies and managed services demand it, and a Cluster routes by it: no other key is ever touched.
func TestEveryKeyAccessIsALiteralKEYS1(t *testing.T) {
	// renewals.lua hands over one of many as KEYS[1]; where that is refused, it is not used.
	const passing = "key[1] = KEYS[i]"
	files, err := fs.Glob(scripts.Files, "*.lua")
	if err != nil || len(files) < 6 {
		t.Fatal(files, err)
	}
	command := regexp.MustCompile(`redis\.p?call\('([A-Z]+)'(, ?[^,)]*)?`)
	for _, file := range files {
		text, _ := scripts.Files.ReadFile(file)
		for n, line := range strings.Split(string(text), "\n") {
			if strings.Contains(line, "KEYS[") && strings.TrimSpace(line) != passing && !strings.HasPrefix(strings.TrimSpace(line), "--") &&
				strings.Count(line, "KEYS[") != strings.Count(line, ", KEYS[1]")+strings.Count(line, ".. KEYS[1]") {
				t.Errorf("%s:%d uses KEYS other than as a command's key: %s", file, n+1, line)
			}
			for _, m := range command.FindAllStringSubmatch(line, -1) {
				if keyed := m[1] != "TIME" && m[1] != "PUBLISH"; keyed && m[2] != ", KEYS[1]" {
					t.Errorf("%s:%d: %s has the key%q", file, n+1, m[1], m[2])
				}
			}
		}
	}
}

func TestSourcesAreWholeAndWithoutComments(t *testing.T) {
	for name := range scripts.SHAs() {
		if text := "\n" + scripts.Source(name); strings.Contains(text, "\n--") || strings.Contains(text, "include") {
			t.Errorf("%s has comments or includes left", name)
		}
	}
}

type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

func TestFailuresAreSortedByWhatMayHaveHappened(t *testing.T) {
	refusedDial := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for _, test := range []struct {
		err                error
		transient, unknown bool
		is                 error
	}{
		{io.EOF, true, true, tenure.ErrUnavailable},
		{&net.OpError{Op: "read", Err: errors.New("i/o timeout")}, true, true, tenure.ErrUnavailable},
		{context.DeadlineExceeded, true, true, tenure.ErrUnavailable},
		{refusedDial, true, false, tenure.ErrUnavailable},
		{redis.ErrPoolTimeout, true, false, tenure.ErrUnavailable},
		{redis.ErrClosed, false, false, tenure.ErrUnavailable},
		{reply("LOADING Redis is loading the dataset in memory"), true, false, tenure.ErrUnavailable},
		{reply("READONLY You can't write against a read only replica."), true, false, tenure.ErrUnavailable},
		{reply("OOM command not allowed when used memory > 'maxmemory'. script: x, on @user_script:1."), true, false, tenure.ErrUnavailable},
		{reply("BUSY Redis is busy running a script."), true, false, tenure.ErrUnavailable},
		{reply("TRYAGAIN Multiple keys request during rehashing of slot"), true, false, tenure.ErrUnavailable},
		{reply("CLUSTERDOWN The cluster is down"), true, false, tenure.ErrUnavailable},
		{reply("WRONGTYPE Operation against a key holding the wrong kind of value"), false, false, tenure.ErrInvalid},
		{reply("HFVERSION the key has protocol version 2"), false, false, tenure.ErrInvalid},
		{reply("NOPERM User joe has no permissions to run the 'evalsha' command"), false, false, tenure.ErrUnavailable},
		{reply("ERR The user executing the script can't run this command or subcommand script: x"), false, false, tenure.ErrUnavailable},
		{reply("ERR unknown command 'EVALSHA'"), false, false, nil},
	} {
		f := scripts.NewFailure(fmt.Errorf("wrapped: %w", test.err))
		if f.Transient != test.transient || f.Unknown != test.unknown {
			t.Errorf("%v: transient %v, unknown %v", test.err, f.Transient, f.Unknown)
		}
		if !errors.Is(f, test.err) || test.is != nil && !errors.Is(f, test.is) {
			t.Errorf("%v: is %v", test.err, f)
		}
		if test.is == nil && (errors.Is(f, tenure.ErrUnavailable) || errors.Is(f, tenure.ErrInvalid)) {
			t.Errorf("%v: has a sentinel: %v", test.err, f)
		}
	}
}

// Small hashes stay compact listpacks only while no field or value is longer than 64 bytes.
func TestFieldsAndValuesStayWithin64Bytes(t *testing.T) {
	mini := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: mini.Addr()})
	defer func() { _ = rdb.Close() }()
	call := scripts.NewCaller(rdb, "p:")
	client := strings.Repeat("x", 22) + "@" + strings.Repeat("l", 19)
	for n := range 2 {
		a := scripts.Acquire{
			Key: "k", Owner: tenure.Owner{Client: client, N: 123456789012345678 + uint64(n)}, Weight: 1 << 30, Capacity: 1 << 30, Depth: 1,
			Lease: 24 * time.Hour, Window: 3 * time.Second, Claim: 24 * time.Hour,
		}
		if _, f := call.Acquire(t.Context(), a); f != nil {
			t.Fatal(n, f)
		}
	}
	r := scripts.Release{Key: "k", Owner: tenure.Owner{Client: client, N: 123456789012345670}, Tomb: 30 * time.Second}
	if _, f := call.Release(t.Context(), r); f != nil {
		t.Fatal(f)
	}
	fields, err := rdb.HGetAll(t.Context(), "k").Result()
	if err != nil || len(fields) < 10 {
		t.Fatal(fields, err)
	}
	for field, value := range fields {
		if len(field) > 64 || len(value) > 64 {
			t.Errorf("%q = %q", field, value)
		}
	}
}

// A pipeline gets no EVAL fallback from go-redis: it is ours.
func TestBatchesSurviveAScriptFlush(t *testing.T) {
	mini := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: mini.Addr()})
	defer func() { _ = rdb.Close() }()
	call := scripts.NewCaller(rdb, "p:")
	for range 3 {
		as := make([]scripts.Acquire, 5)
		for i := range as {
			as[i] = scripts.Acquire{
				Key: fmt.Sprint("k", i), Owner: tenure.Owner{Client: "c", N: 1}, Weight: 1, Capacity: 1, Depth: 1, Lease: time.Second, Window: time.Second, Claim: time.Second,
			}
		}
		answers, failures := call.AcquireAll(t.Context(), as)
		for i := range as {
			if failures[i] != nil || answers[i].Status != scripts.Held {
				t.Fatalf("answer %d: %+v, %v", i, answers[i], failures[i])
			}
		}
		if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAServerThatAnswersNonsenseIsNoHolder(t *testing.T) {
	mini := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: mini.Addr()})
	defer func() { _ = rdb.Close() }()
	rdb.AddHook(nonsense{})
	a := scripts.Acquire{Key: "k", Owner: tenure.Owner{Client: "c", N: 1}, Weight: 1, Capacity: 1, Depth: 1, Lease: time.Second, Claim: time.Second}
	if answer, f := scripts.NewCaller(rdb, "p:").Acquire(t.Context(), a); f == nil || answer.Status == scripts.Held {
		t.Errorf("answer %+v, failure %v", answer, f)
	}
}

// nonsense has every command answered with nothing and no error.
type nonsense struct{}

func (nonsense) DialHook(next redis.DialHook) redis.DialHook { return next }
func (nonsense) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(context.Context, redis.Cmder) error { return nil }
}
func (nonsense) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
