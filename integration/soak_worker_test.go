package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integration/worker"
)

func init() { worker.Register("soaker", soaker) }

// soakLease is that of all holds that are competed for, and as long as a claim, so that one margin fits both. Those that
// are only kept have a longer one, which no fault outlasts.
const (
	soakLease = 3 * time.Second
	keptLease = 15 * time.Second
	// soakPatience is longer than the queues: who is frozen loses his place, and a fault a second slows everybody down.
	soakPatience = 2 * time.Minute
)

var soakKinds = []string{"mutex", "fair", "rw", "sem"}

// soakPlay is what a soaker does: its argument, as JSON.
type soakPlay struct {
	Addr, File string
	Process    int
	Names      int // of each kind, to be competed for
	Goroutines int // that compete
	Kept       int // holds of names of its own
}

// soakEvent is an acquisition of one of many names. It is written when it succeeded, when it is about to be released, and
// when it has ended: of a process that was killed the last may be missing.
type soakEvent struct {
	event
	Kind, Number int // of the name
}

func (e soakEvent) String() string {
	return fmt.Sprint(e.Kind, e.Number, e.ID, e.Process, e.Goroutine, e.Weight, e.Called, e.Returned, e.Token, e.Deadline,
		e.Released, e.Confirmed, e.Unconfirmed, e.Lost, e.ServerKeeps)
}

func parseSoakEvent(line string) (e soakEvent, err error) {
	e.Outcome = got
	_, err = fmt.Sscan(line, &e.Kind, &e.Number, &e.ID, &e.Process, &e.Goroutine, &e.Weight, &e.Called, &e.Returned, &e.Token, &e.Deadline,
		&e.Released, &e.Confirmed, &e.Unconfirmed, &e.Lost, &e.ServerKeeps)
	return e, err
}

// soakParty is a soaker process.
type soakParty struct {
	soakPlay
	keepers []*keeper // for each kind and name

	mu   sync.Mutex // guards file and errs
	file *os.File
	errs []error
}

// soaker is the worker: it says "ready" when it has what it keeps, competes until its input ends, gives everything back and
// makes sure that nothing of it is left in the process.
func soaker(args []string) error {
	p := &soakParty{}
	if err := json.Unmarshal([]byte(args[0]), &p.soakPlay); err != nil {
		return err
	}
	var err error
	if p.file, err = os.OpenFile(p.File, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	client, rdb, err := workerClient(&redis.Options{Addr: p.Addr, ReadTimeout: time.Second})
	if err != nil {
		return err
	}
	for _, kind := range soakKinds {
		for n := range p.Names {
			p.keepers = append(p.keepers, &keeper{client: client, play: play{
				Kind: kind, Name: fmt.Sprint("soak.", n), Process: p.Process, Lease: soakLease, Hold: 20 * time.Millisecond, Tries: 20,
			}})
		}
	}
	kept, err := p.keep(client)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	p.compete()
	for _, h := range kept {
		if err := h.Release(context.Background()); errors.Is(err, holdfast.ErrLost) {
			p.errs = append(p.errs, fmt.Errorf("kept: %w", err))
		}
	}
	p.errs = append(p.errs, closeWorker(client), rdb.Close(), p.file.Close())
	return errors.Join(append(p.errs, goleak.Find())...)
}

func (p *soakParty) keep(client *holdfast.Client) (kept []*holdfast.Hold, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for i := range p.Kept {
		h, err := client.Mutex(fmt.Sprint("kept.", p.Process, ".", i), holdfast.Lease(keptLease)).Lock(ctx)
		if err != nil {
			return nil, err
		}
		kept = append(kept, h)
	}
	return kept, nil
}

func (p *soakParty) compete() {
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for g := range p.Goroutines {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(p.Process), uint64(g)))
			for n := int64(0); ctx.Err() == nil; n++ {
				p.cycle(r, g, int64(p.Process)<<40+int64(g)<<24+n)
			}
		})
	}
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	stop()
	wg.Wait()
}

// cycle is one acquisition of any of the names. One of fifty is given up early; otherwise the only excuse is an attempt.
func (p *soakParty) cycle(r *rand.Rand, g int, id int64) {
	i := r.IntN(len(p.keepers))
	k := p.keepers[i]
	e := soakEvent{event: event{ID: id, Process: p.Process, Goroutine: g}, Kind: i / p.Names, Number: i % p.Names}
	limit := soakPatience
	if r.IntN(50) == 0 {
		limit = time.Duration(5+r.IntN(100)) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	acquire, weight := k.draw(r)
	e.Weight, e.Called = weight, monotonic()
	held, err := acquire(ctx)
	e.Returned = monotonic()
	if err != nil {
		early := limit < soakPatience && errors.Is(err, context.DeadlineExceeded)
		if !early && !errors.Is(err, holdfast.ErrNotAcquired) && !errors.Is(err, holdfast.ErrUnavailable) {
			p.complain(fmt.Errorf("%s %s: after %v: %w", k.Kind, k.Name, time.Duration(e.Returned-e.Called), err))
		}
		pause(r, 10*time.Millisecond)
		return
	}
	e.Outcome, e.Token = got, held.Token()
	e.look(held)
	p.write(e)
	pause(r, k.Hold)
	e.look(held)
	if held.Err() != nil {
		e.Lost = monotonic()
		_ = held.Release(context.Background()) // tells nothing new
		p.write(e)
		return
	}
	e.Released = monotonic()
	p.write(e)
	err = held.Release(context.Background())
	e.Confirmed, e.Unconfirmed = monotonic(), err != nil
	p.write(e)
}

// look takes in until when the hold lasts, and until when the server keeps it at least.
func (e *soakEvent) look(held *holdfast.Hold) {
	e.Deadline = monotonic() + time.Until(held.Deadline()).Nanoseconds()
	e.ServerKeeps = e.Deadline + (soakLease/10 - 2*time.Millisecond).Nanoseconds()
}

func (p *soakParty) write(e soakEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.file.WriteString(e.String() + "\n"); err != nil {
		p.errs = append(p.errs, err)
	}
}

func (p *soakParty) complain(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errs = append(p.errs, err)
}

// soakEvents reads what a soaker wrote. If it was killed, the last line may be torn.
func soakEvents(file string, killed bool) ([]soakEvent, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var events []soakEvent
	at := make(map[int64]int) // of an event, in events
	for line := range strings.Lines(string(text)) {
		e, err := parseSoakEvent(line)
		if err != nil && killed && !strings.HasSuffix(line, "\n") {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		if i, ok := at[e.ID]; ok {
			events[i] = e
			continue
		}
		at[e.ID] = len(events)
		events = append(events, e)
	}
	return events, nil
}
