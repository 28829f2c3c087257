package contender

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
)

// closeWithin bounds the end of a client that is measured: what it leaves behind ends with the server.
const closeWithin = 3 * time.Second

// held is a handle on any of holdfast's primitives.
type held struct {
	lock func(ctx context.Context) (*holdfast.Hold, error)
	hold *holdfast.Hold
}

func (h *held) Lock(ctx context.Context) (err error) {
	h.hold, err = h.lock(ctx)
	return err
}

func (h *held) Unlock() error { return h.hold.Release(context.Background()) }
func (h *held) Token() int64  { return h.hold.Token() }
func (h *held) Valid() bool   { return h.hold.Valid() }

// unordered hides the token: grants that live side by side have them in no order of time.
type unordered struct{ h *held }

func (u unordered) Lock(ctx context.Context) error { return u.h.Lock(ctx) }
func (u unordered) Unlock() error                  { return u.h.Unlock() }

// openHoldfast makes a client; its clients of go-redis are its own, as those of the peers are.
func openHoldfast(c Config) (*holdfast.Client, func(), error) {
	rdb := goRedis(c)
	// By default the label is the host's name, which has no place in a report.
	client, err := holdfast.New(rdb, holdfast.Label("bench"), holdfast.Defaults(holdfast.Lease(c.Lease)))
	if err != nil {
		return nil, nil, err
	}
	return client, func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
		defer cancel()
		_ = client.Close(ctx) // a crowd of waiters may need longer
		_ = rdb.Close()
	}, nil
}

func openMutex(c Config) (*Client, error) {
	client, closeAll, err := openHoldfast(c)
	if err != nil {
		return nil, err
	}
	handle := func(name string) Handle { return &held{lock: client.Mutex(name).Lock} }
	return &Client{Handle: handle, Reader: handle, Close: closeAll}, nil
}

func openFair(c Config) (*Client, error) {
	client, closeAll, err := openHoldfast(c)
	if err != nil {
		return nil, err
	}
	handle := func(name string) Handle { return &held{lock: client.FairLock(name).Lock} }
	return &Client{Handle: handle, Close: closeAll}, nil
}

func openRW(c Config) (*Client, error) {
	client, closeAll, err := openHoldfast(c)
	if err != nil {
		return nil, err
	}
	return &Client{
		Handle: func(name string) Handle { return &held{lock: client.RWLock(name).Lock} },
		Reader: func(name string) Handle { return unordered{&held{lock: client.RWLock(name).RLock}} },
		Close:  closeAll,
	}, nil
}

func openSemaphore(c Config) (*Client, error) {
	client, closeAll, err := openHoldfast(c)
	if err != nil {
		return nil, err
	}
	handle := func(name string) Handle {
		s := client.Semaphore(name, c.Capacity)
		return unordered{&held{lock: func(ctx context.Context) (*holdfast.Hold, error) { return s.Acquire(ctx, 1) }}}
	}
	return &Client{Handle: handle, Reader: handle, Close: closeAll}, nil
}
