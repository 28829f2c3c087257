package holdfastotel_test

import (
	"context"
	"fmt"
	"os"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfastotel"
)

func ExampleObserver() {
	mini := miniredis.NewMiniRedis() // in a service: a Redis
	if err := mini.Start(); err != nil {
		fmt.Println(err)
		return
	}
	defer mini.Close()
	rdb := redis.NewClient(&redis.Options{Addr: mini.Addr()})
	defer func() { _ = rdb.Close() }()

	reader := metric.NewManualReader() // in a service: what exports, such as metric.NewPeriodicReader(exporter)
	observer, err := holdfastotel.Observer(holdfastotel.MeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := holdfast.New(rdb, holdfast.Observe(observer))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	defer func() { _ = client.Close(ctx) }()

	for range 3 {
		if err := client.Mutex("orders:42").Do(ctx, func(context.Context) error { return nil }); err != nil {
			fmt.Println(err)
		}
	}
	show(reader, "holdfast.lock.acquisitions")
	// Output:
	// holdfast.lock.acquisitions 3 holdfast.acquisition.how=at_once,holdfast.lock.kind=mutex
}

// show prints a counter.
func show(reader metric.Reader, name string) {
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			sum, ok := m.Data.(metricdata.Sum[int64])
			if !ok || m.Name != name {
				continue
			}
			for _, p := range sum.DataPoints {
				fmt.Println(name, p.Value, p.Attributes.Encoded(attribute.DefaultEncoder()))
			}
		}
	}
}
