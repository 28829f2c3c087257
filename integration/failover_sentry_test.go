package integration

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

// sentry is a hold of one kind, and somebody who waits for it with another client.
type sentry struct {
	kind    string
	hold    *holdfast.Hold
	waiter  <-chan result
	inspect func(context.Context) (holdfast.State, error)
}

// kindsOfHold are those of which a second one must wait.
var kindsOfHold = []string{"mutex", "fair", "write", "sem1"}

// post takes a hold of every kind with one client and has the other wait for it.
func post(t *testing.T, holding, waiting *holdfast.Client, name string, lease time.Duration) []*sentry {
	t.Helper()
	var ks []*sentry
	for _, kind := range kindsOfHold {
		k := &sentry{kind: kind, inspect: inspector(holding, kind, name)}
		k.hold = take(t, acquirer(holding, kind, name, holdfast.Lease(lease)))
		ch := make(chan result, 1)
		wait := acquirer(waiting, kind, name, holdfast.Lease(lease))
		ctx := within(t, time.Minute)
		go func() {
			h, err := wait(ctx)
			ch <- result{h, err}
		}()
		k.waiter = ch
		inQueue(t, 1, k.inspect)
		ks = append(ks, k)
	}
	return ks
}

// still makes sure that the hold lasts, at the server too, and that its waiter waits.
func (k *sentry) still(t *testing.T) {
	t.Helper()
	if !k.hold.Valid() {
		t.Errorf("%s: lost: %v", k.kind, k.hold.Err())
	}
	state, err := k.inspect(within(t, 5*time.Second))
	if err != nil || len(state.Holders) != 1 || state.Holders[0].Token != k.hold.Token() {
		t.Errorf("%s: the server knows %+v, %v", k.kind, state, err)
	}
	select {
	case r := <-k.waiter:
		t.Errorf("%s: a waiter got in beside the holder: %v, %v", k.kind, r.hold, r.err)
	default:
	}
}

// pass releases the hold and makes sure that the waiter gets it within the time. It returns how long that took.
func (k *sentry) pass(t *testing.T, limit time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	put(t, k.hold)
	h := served(t, limit, k.waiter)
	took := time.Since(began)
	if h.Token() <= k.hold.Token() {
		t.Errorf("%s: token %d after %d", k.kind, h.Token(), k.hold.Token())
	}
	put(t, h)
	return took
}

// replicatedTo waits until a replica has read all that its master has written.
func replicatedTo(t *testing.T, master, replica *redis.Client) {
	t.Helper()
	const mark = "test:mark"
	value := time.Now().String()
	if err := master.Set(t.Context(), mark, value, time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "the replica is in step", func() bool {
		return rawGet(t, replica, mark) == value
	})
}

// rawGet reads a key of the very node, which may be a replica in a cluster.
func rawGet(t *testing.T, rdb *redis.Client, key string) string {
	v, err := rdb.Get(t.Context(), key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	return v
}
