package main

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// buyWatching needs no lock: Redis writes the new number only if nobody wrote another one since it was read. Who was
// too slow begins anew, so that the more buyers there are, the more work is done in vain; nobody is promised a turn. But
// no lease can run out here, no holder can crash, and a buyer that stands still delays nobody.
//
// A lost reply leaves open whether the item was sold, here and below, and go-redis sends again what it got no answer to:
// where that matters, write the sale under an id of its own in the same step, and look whether it is there.
func (s *shop) buyWatching(ctx context.Context, entered func()) (bool, error) {
	for {
		entered()
		bought := false
		err := s.Redis.Watch(ctx, func(tx *redis.Tx) error {
			left, err := tx.Get(ctx, s.job.Stock).Int()
			if err != nil || left <= 0 {
				return err
			}
			if err := s.think(ctx); err != nil {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				return p.Set(ctx, s.job.Stock, left-1, redis.KeepTTL).Err()
			})
			bought = err == nil
			return err
		}, s.job.Stock)
		if !errors.Is(err, redis.TxFailedErr) {
			return bought, err
		}
	}
}

// take runs alone on the server: nothing can come between its reading and its writing.
var take = redis.NewScript(`
local left = tonumber(redis.call('GET', KEYS[1]) or '0')
if left <= 0 then
  return 0
end
redis.call('DECR', KEYS[1])
return 1`)

// buyByScript is the best way, if all that the decision needs is in Redis. It thinks first: a script must not.
func (s *shop) buyByScript(ctx context.Context, entered func()) (bool, error) {
	if err := s.think(ctx); err != nil {
		return false, err
	}
	entered()
	return take.Run(ctx, s.Redis, []string{s.job.Stock}).Bool()
}
