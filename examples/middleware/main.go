// Middleware has HTTP requests for the same order wait for each other, over all instances of a service, while those
// for different orders go on side by side.
//
//	go run ./examples/middleware
//	go run ./examples/middleware -unsafe
//
// Two instances listen on ports of their own, with a holdfast client each. A crowd of callers pays for a few orders
// at both. -unsafe leaves the middleware out: see how many payments meet. It runs on an embedded server, or on that of
// REDIS_ADDR. The middleware itself is in serialize.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/group"
	"github.com/holdfast-go/holdfast/examples/internal/server"
	"github.com/holdfast-go/holdfast/examples/internal/table"
)

const instances = 2

var (
	orders   = flag.Int("orders", 4, "how many orders there are")
	requests = flag.Int("requests", 10, "how many requests come for each order at once")
	wait     = flag.Duration("wait", 5*time.Second, "how long a request waits for its order")
	unsafe   = flag.Bool("unsafe", false, "without the middleware")
)

func main() { server.Main("middleware", run) }

func run(ctx context.Context, srv *server.Server) error {
	if *orders < 1 || *requests < 1 || *wait < time.Millisecond {
		return errors.New("-orders and -requests must be at least 1, -wait at least 1ms")
	}
	fmt.Printf("%d orders × %d payments at %d instances, on %v\n\n", *orders, *requests, instances, srv)
	run := server.Unique("payments")
	till := &till{inside: make(map[string]int)}
	var urls [instances]string
	for i := range urls {
		client, err := srv.Client(fmt.Sprintf("shop-%d", i+1))
		if err != nil {
			return err
		}
		httpd := httptest.NewServer(routes(client, run, till))
		defer httpd.Close()
		urls[i] = httpd.URL
	}
	answers := make([]int, *orders**requests)
	err := group.Each(ctx, len(answers), func(ctx context.Context, i int) (err error) {
		answers[i], err = pay(ctx, fmt.Sprintf("%s/orders/%d/pay", urls[i%instances], i / *requests))
		return err
	})
	if err != nil {
		return err
	}
	return till.report(answers)
}

// routes is the service. The name of the lock has a prefix of its own in a real one, "orders:" for example.
func routes(client *holdfast.Client, run string, t *till) http.Handler {
	var handler http.Handler = t
	if !*unsafe {
		handler = serialize(client, *wait, func(r *http.Request) string { return run + ":" + r.PathValue("order") }, handler)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{order}/pay", handler)
	return mux
}

func pay(ctx context.Context, url string) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// till takes the payments, of both instances: it counts how many it takes at once.
type till struct {
	mu        sync.Mutex     // guards what follows
	inside    map[string]int // by order
	all       int
	met       int // payments that met another one for the same order
	mostAtAll int // at once, for different orders
}

func (t *till) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	order := r.PathValue("order")
	t.count(order, 1)
	defer t.count(order, -1)
	select {
	case <-time.After(5 * time.Millisecond):
		w.WriteHeader(http.StatusNoContent)
	case <-r.Context().Done(): // the caller is gone, or the lock is lost: nothing is paid
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (t *till) count(order string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n > 0 && t.inside[order] > 0 {
		t.met++
	}
	t.inside[order] += n
	t.all += n
	t.mostAtAll = max(t.mostAtAll, t.all)
}

func (t *till) report(answers []int) error {
	paid := 0
	for _, status := range answers {
		if status == http.StatusNoContent {
			paid++
		}
	}
	table.Row("paid", "%d of %d", paid, len(answers))
	table.Row("met their like", "%d", t.met)
	table.Row("most at once", "%d, over all orders", t.mostAtAll)
	if t.met > 0 && !*unsafe {
		return fmt.Errorf("%d payments met another one for the same order", t.met)
	}
	return nil
}
