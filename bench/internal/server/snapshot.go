package server

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Snapshot is what INFO tells at one moment, or the difference of two.
type Snapshot struct {
	At       time.Time
	Commands map[string]Command // by name; what scripts call is among them
	In, Out  int64              // bytes
	CPU      time.Duration      // of the whole process

	reply int64 // length of this INFO's own reply
}

// Command is what INFO commandstats has of one command.
type Command struct {
	Calls int64
	Time  time.Duration
}

// Read asks rdb's server. Only three sections are asked for, to disturb it little.
func Read(ctx context.Context, rdb *redis.Client) (Snapshot, error) {
	text, err := rdb.Info(ctx, "stats", "commandstats", "cpu").Result()
	if err != nil {
		return Snapshot{}, err
	}
	s := Snapshot{At: time.Now(), Commands: make(map[string]Command), reply: int64(len(text))}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case name == "total_net_input_bytes":
			s.In, _ = strconv.ParseInt(value, 10, 64)
		case name == "total_net_output_bytes":
			s.Out, _ = strconv.ParseInt(value, 10, 64)
		case name == "used_cpu_sys" || name == "used_cpu_user":
			seconds, _ := strconv.ParseFloat(value, 64)
			s.CPU += time.Duration(seconds * float64(time.Second))
		case strings.HasPrefix(name, "cmdstat_"):
			s.Commands[strings.TrimPrefix(name, "cmdstat_")] = parse(value)
		}
	}
	return s, nil
}

// parse reads "calls=1,usec=132,usec_per_call=132.00,…".
func parse(stats string) Command {
	var c Command
	for field := range strings.SplitSeq(stats, ",") {
		name, value, _ := strings.Cut(field, "=")
		n, _ := strconv.ParseInt(value, 10, 64) // what is no integer is not read
		switch name {
		case "calls":
			c.Calls = n
		case "usec":
			c.Time = time.Duration(n) * time.Microsecond
		}
	}
	return c
}

// Since returns what happened after before, without the reply to the INFO that read it.
func (s Snapshot) Since(before Snapshot) Snapshot {
	d := Snapshot{
		At: s.At, Commands: make(map[string]Command), CPU: s.CPU - before.CPU,
		In: s.In - before.In, Out: s.Out - before.Out - before.reply,
	}
	for name, c := range s.Commands {
		b := before.Commands[name]
		d.Commands[name] = Command{Calls: c.Calls - b.Calls, Time: c.Time - b.Time}
	}
	return d
}

// Scripts returns how many scripts ran.
func (s Snapshot) Scripts() int64 {
	return s.Sum([]string{"eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro"}).Calls
}

// Sum adds up the commands of the given names.
func (s Snapshot) Sum(names []string) Command {
	var sum Command
	for _, name := range names {
		c := s.Commands[name]
		sum.Calls += c.Calls
		sum.Time += c.Time
	}
	return sum
}

// All returns how many commands ran, those that scripts call included, without our own INFO.
func (s Snapshot) All() int64 {
	var n int64
	for name, c := range s.Commands {
		if name != "info" {
			n += c.Calls
		}
	}
	return n
}
