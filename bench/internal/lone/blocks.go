// Package lone measures one goroutine on a name of its own: the workers of mode a.
package lone

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/worker"
)

// blockCycles is short enough that what disturbs the machine meets all contenders alike, and long enough that the
// clock and the first cycle's cold caches do not count.
const blockCycles = 20

// warmCycles bring scripts, connections and buffers into being.
const warmCycles = 500

// BlocksConfig is for RoleBlocks.
type BlocksConfig struct {
	Addr       string
	Contenders []string
	Time       time.Duration // for all together
}

// Block is what one contender's blocks took.
type Block struct {
	Blocks int
	Median time.Duration // of a cycle, over blocks
	Mean   time.Duration // of a cycle
}

// RoleBlocks times all contenders in one process in random short blocks.
func RoleBlocks(c *worker.Console) error {
	var config BlocksConfig
	if err := c.Configure(&config); err != nil {
		return err
	}
	handles := make([]contender.Handle, len(config.Contenders))
	for i, name := range config.Contenders {
		client, err := contender.Open(name, contender.Config{Addr: config.Addr})
		if err != nil {
			return err
		}
		defer client.Close()
		handles[i] = client.Handle("bench:alone:" + name)
		if _, err := cycles(handles[i], warmCycles); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	times := make([][]time.Duration, len(handles))
	for end := time.Now().Add(config.Time); time.Now().Before(end); {
		i := rand.IntN(len(handles))
		d, err := cycles(handles[i], blockCycles)
		if err != nil {
			return fmt.Errorf("%s: %w", config.Contenders[i], err)
		}
		times[i] = append(times[i], d)
	}
	results := make(map[string]Block)
	for i, name := range config.Contenders {
		results[name] = summed(times[i])
	}
	return c.Say(results)
}

func summed(blocks []time.Duration) Block {
	if len(blocks) == 0 {
		return Block{}
	}
	slices.Sort(blocks)
	var sum time.Duration
	for _, d := range blocks {
		sum += d
	}
	return Block{
		Blocks: len(blocks),
		Median: blocks[len(blocks)/2] / blockCycles,
		Mean:   sum / time.Duration(len(blocks)*blockCycles),
	}
}

// cycles locks and unlocks n times and returns how long it took.
func cycles(h contender.Handle, n int) (time.Duration, error) {
	ctx := context.Background()
	start := time.Now()
	for range n {
		if err := h.Lock(ctx); err != nil {
			return 0, err
		}
		if err := h.Unlock(); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}
