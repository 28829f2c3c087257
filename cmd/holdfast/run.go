package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/holdfast-go/holdfast"
)

// runOptions is what the flags of run say.
type runOptions struct {
	fair, read, write bool
	semaphore         int
	noWait, verbose   bool
	wait, lease       time.Duration
	killAfter         time.Duration
}

const runHelp = `Run a command while holding a lock: wait until NAME is free, run the command, release. The command's exit status is
passed on. The lease is renewed while holdfast lives; if this machine dies, the lock is free after --lease.

The lock is a mutex, or with --fair one in strict order of arrival, with --read or --write a read-write lock, with
--semaphore N one of N places. Different kinds of locks have nothing to do with each other, even with the same name.

The command finds HOLDFAST_TOKEN in its environment, a number that grows from holder to holder: have what the lock
protects refuse smaller ones than it has seen, and even a command that was paused for an hour does no harm. HOLDFAST_NAME
is the name.

If the lock is lost (Redis was away for longer than the lease, somebody released it by force, Redis lost its data), the
command is sent SIGTERM, and SIGKILL after --kill-after. By default that is done before anybody else can be granted a
lock whose lease ran out. On Linux the command also ends when holdfast is killed.

Signals (HUP, INT, QUIT, TERM, USR1, USR2) are passed on to the command, and end a wait for the lock. Without a terminal
the command has a process group of its own, and they reach all of it.

A lock is not once-per-tick: two hosts that run a job at the same minute run it twice, one after the other, unless
--no-wait finds the other at work.

Exit statuses: the command's own, 128+n if signal n ended it; 122 --no-wait and the lock is held; 123 lost; 124 --wait is
over; 125 holdfast failed; 126, 127 the command cannot be executed, was not found.`

const runExample = `  holdfast run nightly-report -- ./report.sh --full
  holdfast run --no-wait nightly-report -- ./report.sh     only if nobody else is at it
  holdfast run --wait 30s db-migration -- migrate up
  holdfast run --semaphore 4 transcode -- ffmpeg …         at most 4 at once, over all hosts
  holdfast run --read config -- ./use.sh                   beside other readers
  holdfast run deploy -- sh -c 'echo my token is $HOLDFAST_TOKEN'`

func (a *app) runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use: "run [flags] NAME -- COMMAND [ARGS…]", Short: "Run a command while holding a lock", Long: runHelp, Example: runExample,
		DisableFlagsInUseLine: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 1 || len(args) < 2 {
				return errors.New("say one NAME, then --, then the command")
			}
			return nil
		},
		ValidArgsFunction: a.completeNames,
	}
	f := cmd.Flags()
	f.BoolVar(&o.fair, "fair", false, "take a fair lock: strict order of arrival")
	f.BoolVar(&o.read, "read", false, "take a read lock: beside other readers")
	f.BoolVar(&o.write, "write", false, "take a write lock: beside nobody")
	f.IntVar(&o.semaphore, "semaphore", 0, "take one of `N` places of a semaphore")
	f.BoolVar(&o.noWait, "no-wait", false, "give up at once (122) if the lock is held")
	f.DurationVar(&o.wait, "wait", 0, "give up (124) after this time; by default it waits as long as it takes")
	f.DurationVar(&o.lease, "lease", 30*time.Second, "how long the lock outlives this process")
	f.DurationVar(&o.killAfter, "kill-after", 2*time.Second, "from SIGTERM to SIGKILL when the lock was lost")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "say what is waited for, also without a terminal")
	cmd.MarkFlagsMutuallyExclusive("fair", "read", "write", "semaphore")
	cmd.MarkFlagsMutuallyExclusive("no-wait", "wait")
	cmd.RunE = a.work(func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("semaphore") && o.semaphore < 1 {
			return usage("--semaphore %d: at least 1 is needed", o.semaphore)
		}
		if cmd.Flags().Changed("wait") && o.wait <= 0 {
			return usage("--wait %v: more than 0 is needed; or say --no-wait", o.wait)
		}
		return a.run(cmd.Context(), &o, args[0], args[1:])
	})
	return cmd
}

// run holds the lock while the command runs.
func (a *app) run(ctx context.Context, o *runOptions, name string, argv []string) error {
	path, err := exec.LookPath(argv[0]) // before the lock is taken for nothing
	if err != nil {
		return notExecutable(err)
	}
	options := holdfast.Defaults(holdfast.Lease(o.lease))
	s, err := a.open(options, holdfast.Logger(a.logger()))
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded()...)
	defer signal.Stop(signals)

	held, err := a.acquire(ctx, s, o, name, signals)
	if err != nil {
		_ = s.close(time.Second) // the wait's error says it all
		return err
	}
	job := &job{
		path: path, argv: argv, env: []string{fmt.Sprint("HOLDFAST_TOKEN=", held.Token()), "HOLDFAST_NAME=" + name},
		hold: held, signals: signals, killAfter: o.killAfter, say: a.say,
	}
	code, err := job.run()
	switch released := held.Release(ctx); {
	case released == nil:
	case errors.Is(released, holdfast.ErrLost):
		if code != exitLost { // the server knew of the hold no more
			a.say("%v before the command ended with status %d", released, code)
			code = exitLost
		}
	default:
		a.say("%v; the lock is free in %v at the latest", released, o.lease)
	}
	_ = s.close(5 * time.Second) // only the release can be unfinished, and that was said
	if err == nil && code != 0 {
		err = silent(code)
	}
	return err
}

// acquire takes the lock. A signal ends the wait.
func (a *app) acquire(ctx context.Context, s *session, o *runOptions, name string, signals <-chan os.Signal) (*holdfast.Hold, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if o.wait > 0 {
		ctx, cancel = context.WithTimeout(ctx, o.wait)
		defer cancel()
	}
	type result struct {
		hold *holdfast.Hold
		err  error
	}
	done := make(chan result, 1)
	go func() { // ends soon after ctx
		held, err := o.lock(ctx, s.client, name)
		done <- result{held, err}
	}()
	tell := time.NewTimer(time.Second)
	defer tell.Stop()
	for {
		select {
		case r := <-done:
			return r.hold, o.failure(r.err)
		case sig := <-signals:
			cancel()
			if r := <-done; r.err == nil { // it had just been granted
				_ = r.hold.Release(ctx) // a lease ends what cannot be released
			}
			return nil, failure(exitSignal+number(sig), "ended by %v while waiting", sig)
		case <-tell.C:
			a.tellWait(ctx, s, o, name)
			tell.Reset(30 * time.Second)
		}
	}
}

// lock makes the call that the flags ask for.
func (o *runOptions) lock(ctx context.Context, c *holdfast.Client, name string) (*holdfast.Hold, error) {
	type locker interface {
		Lock(ctx context.Context) (*holdfast.Hold, error)
		TryLock(ctx context.Context) (*holdfast.Hold, error)
	}
	var l locker = c.Mutex(name)
	switch {
	case o.read && o.noWait:
		return c.RWLock(name).TryRLock(ctx)
	case o.read:
		return c.RWLock(name).RLock(ctx)
	case o.semaphore > 0 && o.noWait:
		return c.Semaphore(name, o.semaphore).TryAcquire(ctx, 1)
	case o.semaphore > 0:
		return c.Semaphore(name, o.semaphore).Acquire(ctx, 1)
	case o.fair:
		l = c.FairLock(name)
	case o.write:
		l = c.RWLock(name)
	}
	if o.noWait {
		return l.TryLock(ctx)
	}
	return l.Lock(ctx)
}

// kind is the kind of lock that the flags ask for.
func (o *runOptions) kind() string {
	switch {
	case o.fair:
		return "fair"
	case o.read, o.write:
		return "rw"
	case o.semaphore > 0:
		return "sem"
	}
	return "mutex"
}

// failure gives the error of an acquisition its exit status.
func (o *runOptions) failure(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, holdfast.ErrInvalid):
		return usage("%w", err)
	case errors.Is(err, holdfast.ErrUnavailable): // also when the time is over: the lock may well be free
		return failure(exitRunFailed, "%w", err)
	case errors.Is(err, holdfast.ErrNotAcquired):
		return failure(exitBusy, "%w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return failure(exitTimeout, "not acquired within %v: %w", o.wait, err)
	}
	return failure(exitRunFailed, "%w", err)
}

// tellWait says what is waited for, to somebody who watches, and to anybody that Redis does not answer.
func (a *app) tellWait(ctx context.Context, s *session, o *runOptions, name string) {
	ctx, cancel := context.WithTimeout(ctx, a.connect.Timeout)
	defer cancel()
	v, err := s.look(ctx, holdfast.Entry{Kind: o.kind(), Name: name})
	switch {
	case err != nil && ctx.Err() == nil || errors.Is(err, holdfast.ErrUnavailable):
		a.say("still waiting: %v", err)
		if h := hint(err); h != "" {
			a.say("%s", h)
		}
	case err != nil || !v.state.Held() || !o.verbose && !term.IsTerminal(int(os.Stderr.Fd())):
	default:
		h := v.state.Holders[0]
		a.say("waiting: %s %s is held by %s for %s", o.kind(), plain(name), who(h.Client, h.Label), short(v.heldFor(h)))
	}
}

// say writes a line about the command's own doings.
func (a *app) say(format string, args ...any) {
	fmt.Fprintf(a.err, "holdfast: "+format+"\n", args...)
}

// logger passes on what the library warns of.
func (a *app) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{
		Level: slog.LevelWarn,
		ReplaceAttr: func(_ []string, attr slog.Attr) slog.Attr {
			if attr.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return attr
		},
	}))
}

// number is a signal's number.
func number(sig os.Signal) int {
	if s, ok := sig.(syscall.Signal); ok {
		return int(s)
	}
	return 0
}
