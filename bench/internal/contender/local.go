package contender

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// named gives all handles of a name the same lock.
type named[T any] struct {
	mu     sync.Mutex // guards byName
	byName map[string]*T
	create func() *T
}

func newNamed[T any](create func() *T) *named[T] {
	return &named[T]{byName: make(map[string]*T), create: create}
}

func (n *named[T]) get(name string) *T {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.byName[name]
	if t == nil {
		t = n.create()
		n.byName[name] = t
	}
	return t
}

// locker is a handle on what Go itself has.
type locker struct{ sync.Locker }

func (l locker) Lock(context.Context) error {
	l.Locker.Lock()
	return nil
}

func (l locker) Unlock() error {
	l.Locker.Unlock()
	return nil
}

func openSyncMutex(Config) (*Client, error) {
	locks := newNamed(func() *sync.Mutex { return new(sync.Mutex) })
	handle := func(name string) Handle { return locker{locks.get(name)} }
	return &Client{Handle: handle, Reader: handle, Close: func() {}}, nil
}

func openSyncRWMutex(Config) (*Client, error) {
	locks := newNamed(func() *sync.RWMutex { return new(sync.RWMutex) })
	return &Client{
		Handle: func(name string) Handle { return locker{locks.get(name)} },
		Reader: func(name string) Handle { return locker{locks.get(name).RLocker()} },
		Close:  func() {},
	}, nil
}

type weighted struct{ *semaphore.Weighted }

func (w weighted) Lock(ctx context.Context) error { return w.Acquire(ctx, 1) }

func (w weighted) Unlock() error {
	w.Release(1)
	return nil
}

func openWeighted(c Config) (*Client, error) {
	semaphores := newNamed(func() *semaphore.Weighted { return semaphore.NewWeighted(int64(c.Capacity)) })
	handle := func(name string) Handle { return weighted{semaphores.get(name)} }
	return &Client{Handle: handle, Reader: handle, Close: func() {}}, nil
}
