package lone

import (
	"context"
	"net"
	"runtime"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/server"
	"github.com/holdfast-go/holdfast/bench/internal/usage"
	"github.com/holdfast-go/holdfast/bench/internal/worker"
)

// DetailConfig is for RoleDetail.
type DetailConfig struct {
	Addr      string
	Contender string
	Cycles    int
}

// Detail is what a cycle costs, on average.
type Detail struct {
	Allocations float64
	Bytes       float64 // allocated
	Trips       float64 // writes to sockets: each is one way to the server
	Scripts     float64
	Commands    float64 // sent
	Calls       float64 // run by the server, in scripts too
	In, Out     float64 // bytes at the server
	ServerCPU   float64 // µs
	ClientCPU   float64 // µs
}

// RoleDetail counts what the cycles of one contender cost, apart from their time: counting socket writes makes
// them a little slower.
func RoleDetail(c *worker.Console) error {
	var config DetailConfig
	if err := c.Configure(&config); err != nil {
		return err
	}
	kind, err := contender.Find(config.Contender)
	if err != nil {
		return err
	}
	var writes atomic.Int64
	client, err := contender.Open(config.Contender, contender.Config{Addr: config.Addr, Dial: counting(&writes)})
	if err != nil {
		return err
	}
	defer client.Close()
	rdb := redis.NewClient(&redis.Options{Addr: config.Addr, PoolSize: 1})
	defer func() { _ = rdb.Close() }()

	ctx := context.Background()
	h := client.Handle("bench:detail")
	if _, err := cycles(h, warmCycles); err != nil {
		return err
	}
	before, err := server.Read(ctx, rdb)
	if err != nil {
		return err
	}
	n := float64(config.Cycles)
	cpu, trips := usage.CPU(), writes.Load()
	objects, bytes, err := allocated(func() error { _, err := cycles(h, config.Cycles); return err })
	if err != nil {
		return err
	}
	cpu, trips = usage.CPU()-cpu, writes.Load()-trips
	after, err := server.Read(ctx, rdb)
	if err != nil {
		return err
	}
	d := after.Since(before)
	return c.Say(Detail{
		Allocations: float64(objects) / n, Bytes: float64(bytes) / n, Trips: float64(trips) / n,
		Scripts: float64(d.Scripts()) / n, Commands: float64(d.Sum(kind.Commands).Calls) / n, Calls: float64(d.All()) / n,
		In: float64(d.In) / n, Out: float64(d.Out) / n,
		ServerCPU: float64(d.CPU.Microseconds()) / n, ClientCPU: float64(cpu.Microseconds()) / n,
	})
}

// allocated returns how many objects and bytes f, and whatever else runs in this process, has allocated.
func allocated(f func() error) (objects, bytes uint64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = f()
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc, err
}

// counted counts writes. It embeds the concrete type, since clients look for more than a net.Conn.
type counted struct {
	*net.TCPConn
	writes *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.TCPConn.Write(b)
}

func counting(writes *atomic.Int64) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return counted{conn.(*net.TCPConn), writes}, nil
	}
}
