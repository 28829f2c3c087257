package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/hold"
)

// inspections is how many names are looked at side by side.
const inspections = 16

// view is a name as it was seen at one moment.
type view struct {
	entry holdfast.Entry
	state holdfast.State
	now   time.Time // on the server's clock
}

// busy reports whether somebody holds or waits: a name that has just become free may still be listed.
func (v view) busy() bool { return v.state.Held() || len(v.state.Queue) > 0 }

// heldFor tells how long a holder has held.
func (v view) heldFor(h hold.Holder) time.Duration { return max(v.now.Sub(h.Granted()), 0) }

// age is how long the longest of the present holds has lasted.
func (v view) age() time.Duration {
	if !v.state.Held() {
		return 0
	}
	return v.heldFor(v.state.Holders[0]) // the oldest token comes first
}

// waiting counts the waiters whose clients live.
func (v view) waiting() int {
	n := 0
	for _, w := range v.state.Queue {
		if w.Alive {
			n++
		}
	}
	return n
}

// look inspects one name.
func (s *session) look(ctx context.Context, e holdfast.Entry) (view, error) {
	state, err := s.client.Inspect(ctx, e)
	if err != nil {
		return view{}, err
	}
	now, err := s.serverTime(ctx, e)
	return view{e, state, now}, err
}

// lookAll inspects all names that match, and returns those in use, by name.
func (s *session) lookAll(ctx context.Context, pattern, kind string) ([]view, error) {
	var mu sync.Mutex
	var views []view
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inspections + 1)
	group.Go(func() error {
		for e, err := range s.client.Names(ctx, pattern) {
			if err != nil {
				return err
			}
			if kind != "" && e.Kind != kind {
				continue
			}
			group.Go(func() error {
				v, err := s.look(ctx, e)
				if err != nil || !v.busy() {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				views = append(views, v)
				return nil
			})
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	slices.SortFunc(views, func(a, b view) int {
		return cmp.Or(strings.Compare(a.entry.Name, b.entry.Name), strings.Compare(a.entry.Kind, b.entry.Kind))
	})
	return views, nil
}

// clocks remembers how far servers' clocks are ahead of ours, by address.
type clocks struct {
	mu    sync.Mutex // guards ahead
	ahead map[string]time.Duration
}

// serverTime is the time on the clock that a name's tokens come from.
func (s *session) serverTime(ctx context.Context, e holdfast.Entry) (time.Time, error) {
	var node redis.Cmdable = s.UniversalClient
	addr := ""
	if cluster, ok := s.UniversalClient.(*redis.ClusterClient); ok {
		master, err := cluster.MasterForKey(ctx, s.key(e))
		if err != nil {
			return time.Time{}, err
		}
		node, addr = master, master.Options().Addr
	}
	s.clocks.mu.Lock()
	defer s.clocks.mu.Unlock() // those who need the same clock wait for it
	ahead, known := s.clocks.ahead[addr]
	if !known {
		sent := time.Now()
		theirs, err := node.Time(ctx).Result()
		if err != nil {
			return time.Time{}, fmt.Errorf("TIME: %w", err)
		}
		ahead = theirs.Sub(sent.Add(time.Since(sent) / 2))
		if s.clocks.ahead == nil {
			s.clocks.ahead = make(map[string]time.Duration)
		}
		s.clocks.ahead[addr] = ahead
	}
	return time.Now().Add(ahead), nil
}

// key is where a name lives.
func (s *session) key(e holdfast.Entry) string { return s.prefix + e.Kind + ":" + e.Name }

// kinds are the primitives as --kind names them.
var kinds = []string{"mutex", "fair", "rw", "sem"}

// kindFlag adds --kind to a command. Its value is checked by checkKind.
func kindFlag(cmd *cobra.Command, kind *string) {
	cmd.Flags().StringVar(kind, "kind", "", "only this `KIND`: mutex, fair, rw or sem")
	complete := cobra.FixedCompletions(kinds, cobra.ShellCompDirectiveNoFileComp)
	_ = cmd.RegisterFlagCompletionFunc("kind", complete) // fails only for a flag that is not there
}

func checkKind(kind string) error {
	if kind == "" || slices.Contains(kinds, kind) {
		return nil
	}
	return usage("--kind %q: mutex, fair, rw and sem are possible", kind)
}
