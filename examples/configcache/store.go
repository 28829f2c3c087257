package main

import (
	"context"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/redis/go-redis/v9"
)

// pause is what the refresher takes between two fields, so that there is something to see half-written.
const pause = 2 * time.Millisecond

// config is a configuration. It is whole if the fields belong together.
type config struct {
	Version  int
	Settings string
	Checksum string
}

func newConfig(version int) config {
	c := config{Version: version, Settings: fmt.Sprintf("color=%06x", version*0x10101)}
	c.Checksum = c.sum()
	return c
}

func (c config) sum() string {
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE(fmt.Appendf(nil, "%d %s", c.Version, c.Settings)))
}

func (c config) whole() bool { return c.Checksum == c.sum() }

// store keeps a configuration in keys of their own, each read and written by itself. It takes no lock.
type store struct {
	rdb                                  *redis.Client
	version, settings, checksum, readers string // keys
}

func newStore(rdb *redis.Client, name string) *store {
	return &store{rdb, name + ":version", name + ":settings", name + ":checksum", name + ":readers"}
}

func (s *store) write(ctx context.Context, c config) error {
	fields := []struct {
		key   string
		value any
	}{{s.version, c.Version}, {s.settings, c.Settings}, {s.checksum, c.Checksum}}
	for _, f := range fields {
		if err := s.rdb.Set(ctx, f.key, f.value, time.Hour).Err(); err != nil {
			return err
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
	return nil
}

func (s *store) read(ctx context.Context) (c config, err error) {
	if c.Version, err = s.rdb.Get(ctx, s.version).Int(); err != nil {
		return c, err
	}
	if c.Settings, err = s.rdb.Get(ctx, s.settings).Result(); err != nil {
		return c, err
	}
	c.Checksum, err = s.rdb.Get(ctx, s.checksum).Result()
	return c, err
}

// enter counts a reader in, over all processes, and returns how many there are now.
func (s *store) enter(ctx context.Context) (int, error) {
	n, err := s.rdb.Incr(ctx, s.readers).Result()
	return int(n), err
}

// leave counts a reader out, also when its context has ended.
func (s *store) leave(ctx context.Context) error {
	return s.rdb.Decr(context.WithoutCancel(ctx), s.readers).Err()
}

// inside returns how many readers there are.
func (s *store) inside(ctx context.Context) (int, error) {
	n, err := s.rdb.IncrBy(ctx, s.readers, 0).Result() // unlike GET it bears that there was none yet
	return int(n), err
}

func (s *store) remove(ctx context.Context) {
	s.rdb.Del(ctx, s.version, s.settings, s.checksum, s.readers)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
