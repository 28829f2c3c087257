package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/connect"
)

// session is a connection to Redis and a holdfast client on it.
type session struct {
	*connect.Target
	client *holdfast.Client
	prefix string
	clocks clocks
}

// open makes a session. It does not connect yet.
func (a *app) open(options ...holdfast.Option) (*session, error) {
	target, err := connect.Open(a.redis, a.connect)
	if err != nil {
		return nil, usage("--redis: %w", err)
	}
	options = append([]holdfast.Option{holdfast.Prefix(a.prefix), holdfast.Logger(slog.New(slog.DiscardHandler))}, options...)
	client, err := holdfast.New(target.UniversalClient, options...)
	if err != nil {
		_ = target.Close()
		return nil, usage("%w", err)
	}
	return &session{Target: target, client: client, prefix: a.prefix}, nil
}

// close ends the session. An error means that something was not released in time.
func (s *session) close(timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return errors.Join(s.client.Close(ctx), s.Close())
}

// on makes a command's function of one that needs a Redis that answers. Its context ends with an interrupt.
func (a *app) on(f func(ctx context.Context, s *session, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return a.work(func(cmd *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		s, err := a.open()
		if err != nil {
			return err
		}
		defer func() { _ = s.close(time.Second) }() // nothing is held
		if err := s.ping(ctx, a.connect.Timeout); err != nil {
			return err
		}
		err = f(ctx, s, cmd, args)
		if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return silent(exitSignal + int(syscall.SIGINT))
		}
		return err
	})
}

// ping makes sure that Redis answers, for an error that is about the connection and nothing else.
func (s *session) ping(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := s.Ping(ctx).Err()
	if err == nil || redis.HasErrorPrefix(err, "NOPERM") {
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %v; is there a firewall, or TLS on one side only? %w", timeout, err)
	}
	return fmt.Errorf("cannot reach %s: %w", s.Address, err)
}

// advice is what helps with an error that contains certain words.
var advice = []struct{ words, hint string }{
	{"NOAUTH", "it wants a password: redis://user:password@host, best in REDIS_URL"},
	{"WRONGPASS", "the user or the password is wrong"},
	{"connection refused", "nothing listens there: is it running, and is --redis or REDIS_URL right?"},
	{"first record does not look like a TLS handshake", "the server does not speak TLS: use redis://"},
	{"certificate", "name the certificates to trust with --tls-ca FILE, or, for a try, --tls-skip-verify"},
	{"MOVED", "this is a Cluster: use redis+cluster://"},
	{"CROSSSLOT", "this is a Cluster: use redis+cluster://"},
	{"cluster support disabled", "this is no Cluster: use redis://"},
	{"all sentinels", "no sentinel could be asked, or none knows a master of that name"},
	{"NOPERM", `"holdfast doctor" says which rights are missing`},
	{"EOF", "the connection was closed: does the server want TLS (rediss://)?"},
}

// hint returns what helps with an error that is often met, or nothing.
func hint(err error) string {
	for _, a := range advice {
		if strings.Contains(err.Error(), a.words) {
			return a.hint
		}
	}
	return ""
}
