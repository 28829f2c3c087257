// Command bench measures holdfast beside the other lock libraries for Redis, on a redis-server that it starts. In
// one run all contenders take turns, so that their ratios mean something although the machine is never quiet.
//
//	go run ./bench -modes a,b -rounds 5 -report docs/performance.md
//
// The modes:
//
//	a  one goroutine on a name of its own; server and client have a core each
//	b  16, 64, 256 goroutines, a name each
//	c  16, 256 goroutines of one process on one name
//	d  4, 16 processes with 4 goroutines each on one name; one goroutine against another process's 16
//	e  c and d with 2 ms of work inside
//	f  read-write lock with 90 and 99 % readers
//	g  semaphore of 8 with 64 callers
//	h  100,000 holds kept for a while
//	i  10,000 goroutines that wait for 1,000 held names
//	k  fair lock and mutex with 1 to 10,000 waiting over 4 processes
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/report"
	"github.com/holdfast-go/holdfast/bench/internal/result"
	"github.com/holdfast-go/holdfast/bench/internal/suite"
	"github.com/holdfast-go/holdfast/bench/internal/worker"
)

func main() {
	worker.Main(suite.Roles) // does not return in a worker
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	s := suite.Settings{Log: os.Stderr}
	modes := flag.String("modes", strings.Join(suite.Modes, ","), "which modes to measure, letters with commas")
	flag.IntVar(&s.Rounds, "rounds", 5, "rounds of each contender in each case")
	flag.DurationVar(&s.Slice, "slice", time.Second, "how long one contender is measured in one round")
	flag.DurationVar(&s.Hold, "hold", 2*time.Minute, "how long mode h keeps its locks")
	flag.BoolVar(&s.Quick, "quick", false, "few cases, small numbers and one round of short slices, to see that it works")
	flag.StringVar(&s.Redis, "redis", "redis-server", "the server's binary")
	raw := flag.String("json", "", "file for what each round gave")
	page := flag.String("report", "", "file for the report in Markdown, with the chart beside it as .svg; else it is printed")
	flag.Parse()
	if s.Quick {
		s.Rounds, s.Slice = 1, 100*time.Millisecond
	}
	s.Modes = strings.Split(*modes, ",")

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	set, version, err := suite.Run(ctx, s)
	if err != nil {
		return err
	}
	machine := report.ThisMachine(version, os.Args[1:])
	if *raw != "" {
		if err := writeJSON(*raw, machine, set); err != nil {
			return err
		}
	}
	return writeReport(*page, machine, set, s.Rounds)
}

func writeJSON(name string, m report.Machine, set result.Set) error {
	text, err := json.MarshalIndent(struct {
		Machine report.Machine
		Samples result.Set
	}{m, set}, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o644)
}

// writeReport prints the report if it has no name.
func writeReport(name string, m report.Machine, set result.Set, rounds int) error {
	if name == "" {
		fmt.Print(report.Markdown(set, m, rounds, ""))
		return nil
	}
	picture := ""
	if svg := report.Chart(set); svg != "" {
		file := strings.TrimSuffix(name, filepath.Ext(name)) + ".svg"
		picture = filepath.Base(file)
		if err := os.WriteFile(file, []byte(svg), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(name, []byte(report.Markdown(set, m, rounds, picture)), 0o644)
}
