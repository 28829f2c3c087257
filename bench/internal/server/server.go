// Package server runs the redis-server of a measurement and reads its statistics.
package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/bench/internal/pinned"
)

const readyWithin = 10 * time.Second

// Server is a redis-server of ours on the loopback interface, without persistence.
type Server struct {
	Addr string

	rdb    *redis.Client
	cmd    *exec.Cmd
	dir    string
	exited chan struct{} // closed by the goroutine of Start that reaps cmd
}

// Start runs the binary on a free port, on one core if cpu is not negative, and returns when it answers.
func Start(ctx context.Context, bin string, cpu int) (*Server, error) {
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, exited: make(chan struct{})}
	port, err := freePort()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	s.cmd = pinned.Command(cpu, bin, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir,
		"--save", "", "--appendonly", "no", "--logfile", filepath.Join(dir, "log"), "--maxclients", "20000")
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	go func() {
		_ = s.cmd.Wait() // killed is how it ends
		close(s.exited)
	}()
	s.rdb = redis.NewClient(&redis.Options{Addr: s.Addr, PoolSize: 1, ReadTimeout: 30 * time.Second})
	if err := s.awaitReady(ctx); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		s.Stop()
		return nil, fmt.Errorf("%s: %w\n%s", bin, err, log)
	}
	return s, nil
}

// freePort picks a port below those from which the kernel takes the local ports of connections.
func freePort() (int, error) {
	for port := 15000 + os.Getpid()%8000; port < 32000; port++ {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("no free port")
}

// awaitReady also makes sure that it is our process that answers: another may have taken the port.
func (s *Server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		info, err := s.rdb.InfoMap(ctx, "server").Result()
		if err == nil {
			if pid := info["Server"]["process_id"]; pid != strconv.Itoa(s.cmd.Process.Pid) {
				return fmt.Errorf("process %s has the port %s", pid, s.Addr)
			}
			return nil
		}
		select {
		case <-s.exited:
			return errors.New("it ended at once")
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Version returns what the server says of itself.
func (s *Server) Version(ctx context.Context) string {
	info, err := s.rdb.InfoMap(ctx, "server").Result()
	if err != nil {
		return err.Error()
	}
	return info["Server"]["redis_version"]
}

// Flush empties the server.
func (s *Server) Flush(ctx context.Context) error { return s.rdb.FlushAll(ctx).Err() }

// Subscribers returns how many connections are subscribed to something.
func (s *Server) Subscribers(ctx context.Context) (int, error) {
	list, err := s.rdb.Do(ctx, "client", "list", "type", "pubsub").Text()
	if err != nil {
		return 0, err
	}
	n := 0
	for _, c := range list {
		if c == '\n' {
			n++
		}
	}
	return n, nil
}

// Snapshot reads the statistics.
func (s *Server) Snapshot(ctx context.Context) (Snapshot, error) { return Read(ctx, s.rdb) }

// Stop ends the server and removes what it left.
func (s *Server) Stop() {
	if s.rdb != nil {
		_ = s.rdb.Close()
	}
	_ = s.cmd.Process.Kill() // fails only if it has ended
	<-s.exited
	_ = os.RemoveAll(s.dir)
}
