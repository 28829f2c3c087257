package scripts

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

// scanCount is how many keys a server looks at for one SCAN: few enough not to be felt by others, enough for a million
// keys in a thousand round trips.
const scanCount = 1000

// Scan walks over the hashes whose keys match a glob, on one master after the other. For one goroutine at a time.
type Scan struct {
	caller *Caller
	match  string
	nodes  []redis.Cmdable // still to be walked over; nil before the first Next
	cursor uint64          // on the first of them
}

// Scan returns a walk that has not begun: match is a glob over whole keys.
func (c *Caller) Scan(match string) *Scan { return &Scan{caller: c, match: match} }

// Next sends one SCAN and returns what it found, which may be nothing, or a key that was there before. more is
// false after the last one. A walk that failed cannot go on.
func (s *Scan) Next(ctx context.Context) (keys []string, more bool, f *Failure) {
	if s.nodes == nil {
		var err error
		if s.nodes, err = s.caller.masters(ctx); err != nil {
			return nil, false, s.caller.failed(ctx, err)
		}
	}
	if len(s.nodes) == 0 {
		return nil, false, nil
	}
	// A plain command: it may be sent as often as go-redis likes.
	keys, cursor, err := s.nodes[0].ScanType(ctx, s.cursor, s.match, scanCount, "hash").Result()
	if err != nil {
		return nil, false, s.caller.failed(ctx, err)
	}
	if s.cursor = cursor; cursor == 0 {
		s.nodes = s.nodes[1:]
	}
	return keys, len(s.nodes) > 0, nil
}

// masters returns the servers that have keys: a SCAN sees those of one server.
func (c *Caller) masters(ctx context.Context) ([]redis.Cmdable, error) {
	var mu sync.Mutex // go-redis calls add from a goroutine per node
	var nodes []redis.Cmdable
	add := func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, node)
		return nil
	}
	switch rdb := c.rdb.(type) {
	case *redis.ClusterClient:
		err := rdb.ForEachMaster(ctx, add)
		return nodes, err
	case *redis.Ring:
		err := rdb.ForEachShard(ctx, add)
		return nodes, err
	default:
		return []redis.Cmdable{rdb}, nil
	}
}
