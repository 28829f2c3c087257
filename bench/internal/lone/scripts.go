package lone

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/server"
	"github.com/holdfast-go/holdfast/bench/internal/worker"
)

// ScriptsConfig is for RoleScripts.
type ScriptsConfig struct {
	Addr       string
	Contenders []string
	Rounds     int // in each, every contender has its turn
	Goroutines int // with a name each
	Cycles     int // of each goroutine in a round
}

// RoleScripts tells what the server spends on the commands of a cycle, in µs for each contender and round: what
// INFO commandstats says, that is without reading, parsing and writing. It asks before and after each turn, so
// nothing need be known of what a contender sends.
func RoleScripts(c *worker.Console) error {
	var config ScriptsConfig
	if err := c.Configure(&config); err != nil {
		return err
	}
	rdb := redis.NewClient(&redis.Options{Addr: config.Addr, PoolSize: 1})
	defer func() { _ = rdb.Close() }()
	var all []*timed
	for _, name := range config.Contenders {
		t, err := newTimed(name, config)
		if err != nil {
			return err
		}
		defer t.client.Close()
		if _, err := t.turn(rdb, warmCycles/config.Goroutines+1); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, t)
	}
	results := make(map[string][]float64)
	for range config.Rounds {
		for i, t := range all {
			micros, err := t.turn(rdb, config.Cycles)
			if err != nil {
				return err
			}
			name := config.Contenders[i]
			results[name] = append(results[name], micros)
		}
	}
	return c.Say(results)
}

type timed struct {
	client   *contender.Client
	commands []string
	handles  []contender.Handle
}

func newTimed(name string, config ScriptsConfig) (*timed, error) {
	kind, err := contender.Find(name)
	if err != nil {
		return nil, err
	}
	client, err := contender.Open(name, contender.Config{Addr: config.Addr})
	if err != nil {
		return nil, err
	}
	t := &timed{client: client, commands: kind.Commands}
	for i := range config.Goroutines {
		t.handles = append(t.handles, client.Handle("bench:scripts:"+name+":"+strconv.Itoa(i)))
	}
	return t, nil
}

// turn runs n cycles of each handle at once and returns the server's µs for a cycle.
func (t *timed) turn(rdb *redis.Client, n int) (float64, error) {
	before, err := server.Read(context.Background(), rdb)
	if err != nil {
		return 0, err
	}
	errs := make(chan error, len(t.handles))
	var running sync.WaitGroup
	for _, h := range t.handles {
		running.Go(func() {
			if _, err := cycles(h, n); err != nil {
				errs <- err
			}
		})
	}
	running.Wait()
	select {
	case err := <-errs:
		return 0, err
	default:
	}
	after, err := server.Read(context.Background(), rdb)
	if err != nil {
		return 0, err
	}
	spent := after.Since(before).Sum(t.commands).Time
	return float64(spent) / float64(time.Microsecond) / float64(n*len(t.handles)), nil
}
