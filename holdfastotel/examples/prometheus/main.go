// Prometheus shows what holdfast tells Prometheus. A few workers contend for a lock, for a read-write lock and for a
// semaphore, on a server embedded in the process:
//
//	go run ./holdfastotel/examples/prometheus
//	curl -s localhost:2112/metrics | grep ^holdfast_
//
// REDIS_ADDR=host:port has them work on that server, -listen on another address than localhost:2112. It ends with an
// interrupt.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfastotel"
)

var listen = flag.String("listen", "localhost:2112", "the `address` that serves /metrics")

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "prometheus:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	rdb, stop, err := connect()
	if err != nil {
		return err
	}
	defer stop()
	client, metrics, err := observed(rdb)
	if err != nil {
		return err
	}
	defer shut(client)
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Printf("http://%v/metrics\n", listener.Addr())
	server := &http.Server{Handler: metrics, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	go contend(ctx, client)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// observed returns a client whose metrics the handler serves under /metrics: this is all that a service needs.
func observed(rdb redis.UniversalClient) (*holdfast.Client, http.Handler, error) {
	registry := prometheus.NewRegistry() // prometheus.DefaultRegisterer, if there are other metrics
	reader, err := exporter.New(exporter.WithRegisterer(registry))
	if err != nil {
		return nil, nil, err
	}
	observer, err := holdfastotel.Observer(holdfastotel.MeterProvider(sdk.NewMeterProvider(sdk.WithReader(reader))))
	if err != nil {
		return nil, nil, err
	}
	client, err := holdfast.New(rdb, holdfast.Observe(observer))
	if err != nil {
		return nil, nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return client, mux, nil
}

// connect returns a client of REDIS_ADDR, or of a server embedded in the process, and a function that ends both.
func connect() (rdb *redis.Client, stop func(), err error) {
	addr, shut := os.Getenv("REDIS_ADDR"), func() {}
	if addr == "" {
		mini := miniredis.NewMiniRedis()
		mini.ClockTTL(true) // without it keys never expire
		if err := mini.Start(); err != nil {
			return nil, nil, err
		}
		addr, shut = mini.Addr(), mini.Close
	}
	rdb = redis.NewClient(&redis.Options{Addr: addr})
	return rdb, func() {
		_ = rdb.Close()
		shut()
	}, nil
}

func shut(client *holdfast.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := client.Close(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "prometheus:", err)
	}
}
