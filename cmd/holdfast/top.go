package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// leisure is how many times as long as a look took top rests at least: it must not be what keeps Redis busy.
const leisure = 4

func (a *app) topCommand() *cobra.Command {
	var interval time.Duration
	cmd := &cobra.Command{
		Use: "top [PATTERN]", Args: cobra.MaximumNArgs(1),
		Short: "Watch what is held and contended, live",
		Long: `Watch what is held and contended, live: all names or those that match PATTERN, the most waited for first.

Keys:  s  sort by waiters or by how long a name has been held
       q  quit

It needs a terminal; "holdfast ls --json" is for programs. It looks every --interval, less often if a look takes long.`,
		Example: `  holdfast top
  holdfast top 'orders:*' --interval 5s`,
	}
	cmd.Flags().DurationVar(&interval, "interval", time.Second, "from one look to the next")
	cmd.RunE = a.on(func(ctx context.Context, s *session, _ *cobra.Command, args []string) error {
		if interval <= 0 {
			return usage("--interval %v: more than 0 is needed", interval)
		}
		pattern := ""
		if len(args) > 0 {
			pattern = args[0]
		}
		return a.top(ctx, s, pattern, interval)
	})
	return cmd
}

// top owns the terminal until q, an interrupt or a signal.
func (a *app) top(ctx context.Context, s *session, pattern string, interval time.Duration) error {
	in, out := int(os.Stdin.Fd()), int(os.Stdout.Fd())
	if !term.IsTerminal(in) || !term.IsTerminal(out) {
		return errors.New("top needs a terminal; see \"holdfast ls\"")
	}
	before, err := term.MakeRaw(in)
	if err != nil {
		return err
	}
	defer func() { _ = term.Restore(in, before) }() // nothing better can be done
	fmt.Fprint(a.out, "\x1b[?1049h\x1b[?25l")       // the other screen, no cursor
	defer fmt.Fprint(a.out, "\x1b[?25h\x1b[?1049l")

	looks := make(chan look)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go s.watch(ctx, pattern, interval, looks) // ends with ctx
	keys := make(chan byte)
	go readKeys(a.in, keys) // ends with the process: a read cannot be ended
	screen := screen{address: s.Address, pattern: pattern, byWaiters: true}
	for {
		screen.width, screen.height, _ = term.GetSize(out) // 0 if unknown
		fmt.Fprint(a.out, screen.frame())
		select {
		case <-ctx.Done():
			return nil
		case l := <-looks:
			screen.update(l)
		case key := <-keys:
			switch key {
			case 's':
				screen.byWaiters = !screen.byWaiters
			case 'q', 3, 4: // Ctrl-C and Ctrl-D are no signals in raw mode
				return nil
			}
		}
	}
}

// look is what one look at Redis gave.
type look struct {
	views []view
	err   error
	at    time.Time
}

// watch looks again and again until ctx ends.
func (s *session) watch(ctx context.Context, pattern string, interval time.Duration, looks chan<- look) {
	for {
		began := time.Now()
		views, err := s.lookAll(ctx, pattern, "")
		select {
		case looks <- look{views, err, time.Now()}:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(max(interval-time.Since(began), leisure*time.Since(began))):
		case <-ctx.Done():
			return
		}
	}
}

// readKeys sends what is typed.
func readKeys(in io.Reader, keys chan<- byte) {
	buf := make([]byte, 16)
	for {
		n, err := in.Read(buf)
		for _, key := range buf[:n] {
			keys <- key
		}
		if err != nil {
			return
		}
	}
}

// byWaiters puts the most waited for first, byAge what is held longest.
func byWaiters(a, b view) int {
	return cmp.Or(cmp.Compare(b.waiting(), a.waiting()), cmp.Compare(b.age(), a.age()), cmp.Compare(a.entry.Name, b.entry.Name))
}

func byAge(a, b view) int {
	return cmp.Or(cmp.Compare(b.age(), a.age()), cmp.Compare(b.waiting(), a.waiting()), cmp.Compare(a.entry.Name, b.entry.Name))
}
