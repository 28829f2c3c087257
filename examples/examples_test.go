// Package examples_test runs the examples as their readers do, on the embedded server.
package examples_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// bin is where TestMain puts the examples.
var bin string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "holdfast-examples-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	bin = dir + string(filepath.Separator)
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", bin, "./quickstart", "./flashsale", "./slowapi", "./configcache",
		"./cron", "./middleware", "./workerpool", "./fencing")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// command prepares an example. It is killed if it takes far longer than it should.
func command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	cmd := exec.CommandContext(ctx, bin+name, args...)
	cmd.Env = append(os.Environ(), "REDIS_ADDR=") // embedded, whatever the other tests run on
	return cmd
}

// run runs an example that must succeed, and returns what it prints.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := command(t, name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("%s: %v\n%s%s", cmd, err, out, stderr.String())
	}
	return string(out)
}

// contains fails the test unless each of the lines is part of the output.
func contains(t *testing.T, out string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(out, line) {
			t.Errorf("%q is missing from\n%s", line, out)
		}
	}
}

// number returns the number behind a label.
func number(t *testing.T, out, label string) int {
	t.Helper()
	match := regexp.MustCompile(`(?m)^ *` + regexp.QuoteMeta(label) + `: (\d+)`).FindStringSubmatch(out)
	if match == nil {
		t.Fatalf("no %q in\n%s", label, out)
	}
	n, err := strconv.Atoi(match[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestQuickstartShowsThatAllPromisesHold(t *testing.T) {
	out := run(t, "quickstart")
	if strings.Contains(out, "✗") {
		t.Errorf("an observation did not hold:\n%s", out)
	}
	contains(t, out, "Exclusion:", "Re-entry:", "Renewal:", "Hand-over:", "Patience:", "Loss:", "Fencing:", "observations held")
}

func TestFlashSaleSellsEachItemOnce(t *testing.T) {
	for _, lock := range []string{"mutex", "fair", "watch", "script"} {
		t.Run(lock, func(t *testing.T) {
			out := run(t, "flashsale", "-lock", lock, "-stock", "200")
			contains(t, out, " sold: 200\n", "left: 0\n", "oversold: 0\n")
		})
	}
}

func TestFlashSaleWithoutTheLockOversells(t *testing.T) {
	out := run(t, "flashsale", "-unsafe", "-stock", "100")
	if number(t, out, "oversold") == 0 {
		t.Errorf("nothing was oversold:\n%s", out)
	}
}

func TestSlowAPINeverSeesTooManyCalls(t *testing.T) {
	contains(t, run(t, "slowapi", "-calls", "10"), " served: 160\n", "refused: 0\n", "most at once: 3 of 3\n")
}

func TestSlowAPIWithoutTheSemaphoreRefusesCalls(t *testing.T) {
	out := run(t, "slowapi", "-unsafe")
	if number(t, out, "refused") == 0 {
		t.Errorf("nothing was refused:\n%s", out)
	}
}

func TestConfigCacheShowsWholeConfigurations(t *testing.T) {
	out := run(t, "configcache", "-versions", "10")
	contains(t, out, " versions: 10\n", "half-written: 0\n", "met by refresher: 0\n")
	if number(t, out, "readers at once") < 2 {
		t.Errorf("the readers did not overlap:\n%s", out)
	}
}

func TestConfigCacheWithoutTheLockShowsHalfWrittenOnes(t *testing.T) {
	out := run(t, "configcache", "-unsafe", "-versions", "10")
	if number(t, out, "half-written") == 0 {
		t.Errorf("all configurations were whole:\n%s", out)
	}
}

func TestCronRunsOncePerTick(t *testing.T) {
	out := run(t, "cron", "-ticks", "10")
	contains(t, out, "run twice: 0\n")
	if number(t, out, "ticks run") == 0 {
		t.Errorf("nothing was run:\n%s", out)
	}
}

func TestCronThatForgetsRunsTwice(t *testing.T) {
	out := run(t, "cron", "-forget", "-term", "50ms") // every tick has a change of leaders
	if number(t, out, "run twice") == 0 {
		t.Errorf("nothing was run twice:\n%s", out)
	}
}

func TestCronWithoutTheLockRunsOnEachHost(t *testing.T) {
	out := run(t, "cron", "-unsafe", "-ticks", "5")
	if number(t, out, "run twice") == 0 {
		t.Errorf("nothing was run twice:\n%s", out)
	}
}

func TestMiddlewareSerializesRequestsPerOrder(t *testing.T) {
	out := run(t, "middleware", "-wait", "30s")
	contains(t, out, " paid: 40 of 40\n", "met their like: 0\n")
	if number(t, out, "most at once") < 2 {
		t.Errorf("different orders waited for each other:\n%s", out)
	}
}

func TestMiddlewareRefusesWhatWaitsTooLong(t *testing.T) {
	out := run(t, "middleware", "-orders", "1", "-requests", "40", "-wait", "20ms") // 40 take 200 ms at least
	if paid := number(t, out, "paid"); paid == 40 {
		t.Errorf("%d paid:\n%s", paid, out)
	}
}

func TestWithoutTheMiddlewareRequestsMeet(t *testing.T) {
	out := run(t, "middleware", "-unsafe")
	if number(t, out, "met their like") == 0 {
		t.Errorf("no requests met:\n%s", out)
	}
}

func TestWorkerPoolsShareOneLimit(t *testing.T) {
	contains(t, run(t, "workerpool"), " done: 120 of 120\n", "units at once: 5 of 5\n")
}

func TestWorkerPoolsWithoutTheLimitExceedIt(t *testing.T) {
	out := run(t, "workerpool", "-unsafe")
	if number(t, out, "units at once") <= 5 {
		t.Errorf("the limit was kept by chance:\n%s", out)
	}
}

func TestFencingRefusesTheLateWrite(t *testing.T) {
	contains(t, run(t, "fencing"), "refused: a later holder has written\n", "account: written by the other\n")
}

func TestWithoutFencingTheLateWriteGoesThrough(t *testing.T) {
	contains(t, run(t, "fencing", "-unsafe"), "account: written by the sleeper\n")
}

func TestAnInterruptEndsAllProcesses(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot interrupt another one here")
	}
	cmd := command(t, "flashsale", "-think", "50ms") // it would take 25 s
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	headline, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	awaitSale(t, headline)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	table, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // children that stay would keep stderr open, and this from returning
	if cmd.ProcessState.ExitCode() != 1 || stderr.String() != "flashsale: interrupted\n" {
		t.Errorf("exit status %d, %q", cmd.ProcessState.ExitCode(), stderr.String())
	}
	contains(t, string(table), "oversold: 0\n")
	if sold := number(t, string(table), "sold"); sold == 0 || sold == 500 {
		t.Errorf("%d sold:\n%s", sold, table)
	}
}

// awaitSale waits until an item of the flash sale with that headline is sold.
func awaitSale(t *testing.T, headline string) {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(headline)})
	defer rdb.Close()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		keys, err := rdb.Keys(t.Context(), "flashsale:*").Result()
		if err != nil {
			t.Fatal(err)
		}
		if len(keys) != 1 {
			continue
		}
		if left, err := rdb.Get(t.Context(), keys[0]).Int(); err == nil && left < 500 {
			return
		}
	}
	t.Fatal("nothing was sold")
}
