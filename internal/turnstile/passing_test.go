package turnstile

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/hold"
	"github.com/holdfast-go/holdfast/internal/tenure"
)

// relayed is a mutex with a holder and those who wait behind it in the same client.
type relayed struct {
	*turnstile
	holder  *owner
	request *Request
}

func mutexRequest(t *testing.T, options ...hold.Option) *Request {
	t.Helper()
	settings, err := hold.Resolve(options...)
	if err != nil {
		t.Fatal(err)
	}
	return &Request{Name: "n", Key: "p:mutex:n", Weight: 1, Capacity: 1, Settings: &settings, Reentrant: true, OneTicket: true}
}

// newRelayed has turns of 50 ms.
func newRelayed(t *testing.T, h *Hall, options ...hold.Option) relayed {
	t.Helper()
	r := mutexRequest(t, options...)
	held, err := h.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	o := held.Keeper().(*owner)
	o.turn.mu.Lock()
	o.turn.usual = 20 * time.Millisecond
	o.turn.mu.Unlock()
	t.Cleanup(func() { o.tenure.End(tenure.ErrReleased) })
	return relayed{o.turn, o, r}
}

// wait puts a waiter into the local queue.
func (r relayed) wait(request *Request) *waiter {
	w := r.hall.newWaiter(request, false)
	r.mu.Lock()
	r.local.push(&w.place, w)
	r.mu.Unlock()
	return w
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func TestTurnIsLongEnoughForSomeHoldsAndNeverLong(t *testing.T) {
	r := newRelayed(t, newTestHall(t))
	for usual, want := range map[time.Duration]time.Duration{ms(5): ms(20), ms(10): ms(40), ms(20): ms(50), time.Hour: ms(50)} {
		r.usual = usual
		if got := r.turn(); got < want || got > maxTurn {
			t.Errorf("with holds of %v a turn lasts %v, want %v", usual, got, want)
		}
	}
	if r.usual = 0; r.turn() < minTurn {
		t.Errorf("with holds of nothing a turn lasts %v", r.turn())
	}
}

func TestOneLongHoldHardlyLengthensTheTurns(t *testing.T) {
	var r turnstile
	r.lasted(time.Second)
	if r.usual > ms(5) {
		t.Errorf("a first hold of 1 s counts as %v", r.usual)
	}
	r.usual = 10 * time.Microsecond
	r.lasted(time.Second)
	if r.usual > ms(1) {
		t.Errorf("one hold of 1 s counts as %v", r.usual)
	}
	for range 200 {
		r.lasted(ms(10))
	}
	if r.usual < ms(9) || r.usual > ms(10) {
		t.Errorf("holds of 10 ms count as %v", r.usual)
	}
	for range 20 {
		r.lasted(ms(1))
	}
	if r.usual > ms(2) {
		t.Errorf("holds of 1 ms count as %v", r.usual)
	}
}

// What becomes of the tenure when a hold is released so long after its turn began.
func TestWhoeverWaitsElsewhereIsKnownBeforeTheNextTurn(t *testing.T) {
	for name, c := range map[string]struct {
		taken  time.Duration
		others int32
		heard  time.Duration // ago
		asked  bool

		passed, asks, begins bool
	}{
		"early":                          {taken: ms(10), others: unheard, passed: true},
		"early, others wait":             {taken: ms(10), others: 3, passed: true},
		"towards the end":                {taken: ms(35), others: unheard, passed: true, asks: true},
		"towards the end, nobody waits":  {taken: ms(35), others: 0, passed: true},
		"towards the end, asked already": {taken: ms(35), others: unheard, asked: true, passed: true},
		"over, nobody waits":             {taken: ms(60), others: 0, heard: ms(30), asked: true, passed: true, begins: true},
		"over, nobody waited long ago":   {taken: ms(90), others: 0, heard: ms(55), asked: true},
		"over, one waits":                {taken: ms(60), others: 1, asked: true},
		"over, the answer is late":       {taken: ms(60), others: unheard, asked: true, passed: true},
		"over, the answer is very late":  {taken: ms(80), others: unheard, asked: true},
		"just over, nobody asked":        {taken: ms(60), others: unheard, passed: true, asks: true},
		"long over, nobody asked":        {taken: ms(80), others: unheard},
		"long over, nobody waits":        {taken: time.Hour, others: 0, heard: ms(30), asked: true, passed: true, begins: true},
		"long over, nobody waited then":  {taken: time.Hour, others: 0, heard: time.Hour, asked: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRelayed(t, newTestHall(t))
			w := r.wait(r.request)
			now, p := tenure.Now(), &r.holder.passing
			r.mu.Lock()
			defer r.mu.Unlock()
			*p = passing{began: now.Add(-c.taken), heard: now.Add(-c.heard), others: c.others, asked: c.asked}
			if heir := r.holder.heir(now); (heir == w) != c.passed {
				t.Errorf("passed on: %t", heir != nil)
			}
			if p.asked != (c.asked || c.asks) && !c.begins {
				t.Errorf("asked: %t", p.asked)
			}
			if begun := *p == (passing{began: now, others: unheard}); begun != c.begins {
				t.Errorf("the next turn begins: %t, %+v", begun, *p)
			}
			r.local.remove(&w.place)
		})
	}
}

func TestAnAnswerCountsForTheTurnInWhichItWasAsked(t *testing.T) {
	for name, same := range map[string]bool{"same turn": true, "next turn": false} {
		t.Run(name, func(t *testing.T) {
			r := newRelayed(t, newTestHall(t))
			r.mu.Lock()
			r.holder.passing.begin(tenure.Now())
			r.holder.askOthers()
			if !same {
				r.holder.passing.begin(tenure.Now().Add(1))
			}
			r.mu.Unlock()
			if err := r.hall.crew.wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			if p := r.holder.passing; (p.others == 0) != same || p.heard.IsZero() == same {
				t.Errorf("others: %d, heard %v ago", p.others, p.heard.Since())
			}
		})
	}
}

// That somebody waits is known for the whole turn; that nobody does is soon old news.
func TestAGrantTellsWhoWaits(t *testing.T) {
	for others, want := range map[int]int32{0: unheard, 3: 3} {
		r := newRelayed(t, newTestHall(t))
		r.mu.Lock()
		r.holder.passing.begin(tenure.Now())
		r.holder.passing.told(others)
		if got := r.holder.passing.others; got != want {
			t.Errorf("with %d waiting: %d", others, got)
		}
		r.mu.Unlock()
	}
}

// Each answer to a renewal that knows the tenure is worth new tokens.
func TestRenewalsAreProofs(t *testing.T) {
	for name, renew := range map[string]func(r relayed) error{
		"asking who else waits": func(r relayed) error {
			r.mu.Lock()
			r.holder.askOthers()
			r.mu.Unlock()
			return r.hall.crew.wait(t.Context())
		},
		"extending": func(r relayed) error { return r.holder.Extend(t.Context(), &r.holder.tenure) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRelayed(t, newTestHall(t))
			w := r.wait(r.request)
			granted := r.holder.tenure.Token()
			time.Sleep(ms(2)) // the server counts its time in ms
			if err := renew(r); err != nil {
				t.Fatal(err)
			}
			if passed, _, err := r.holder.leave(r.holder.share); !passed || err != nil {
				t.Fatalf("passed on %t, %v", passed, err)
			}
			if base := tenure.BaseOf(w.share.Token()); base <= granted || base != r.holder.tenure.Base() {
				t.Errorf("base %d after %d", base, granted)
			}
		})
	}
}

func TestATenureWhoseTokensAreUsedUpGoesBackToTheServer(t *testing.T) {
	r := newRelayed(t, newTestHall(t))
	last := r.wait(r.request)
	for i := range 1024 {
		w := last
		last = r.wait(r.request)
		r.mu.Lock()
		r.holder.passing = passing{began: tenure.Now(), others: unheard, asking: true} // and no answer comes
		r.mu.Unlock()
		passed, depth, err := r.holder.leave(r.holder.share)
		if passed != (i < 1023) || depth != 0 || err != nil {
			t.Fatalf("pass %d: %t, depth %d, %v", i, passed, depth, err)
		}
		if passed {
			if err := <-w.ready; err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.holder.giveBack(); err != nil {
		t.Fatal(err)
	}
}

func TestAProofIsAskedForBeforeTheTokensAreUsedUp(t *testing.T) {
	r := newRelayed(t, newTestHall(t))
	last := r.wait(r.request)
	for i := range 5000 {
		w := last
		last = r.wait(r.request)
		r.mu.Lock()
		r.holder.passing.begin(tenure.Now())
		r.mu.Unlock()
		if passed, _, err := r.holder.leave(r.holder.share); !passed || err != nil {
			t.Fatalf("pass %d: %t, %v", i, passed, err)
		}
		if err := <-w.ready; err != nil {
			t.Fatal(err)
		}
		if tenure.RunsLow(w.share.Token()) {
			time.Sleep(ms(2))
		}
	}
	r.mu.Lock()
	r.local.remove(&last.place)
	r.mu.Unlock()
	if base := r.holder.tenure.Base(); base <= r.holder.tenure.Token() {
		t.Errorf("the base is still %d", base)
	}
}

func TestSomeTenuresAreNotPassedOn(t *testing.T) {
	for name, c := range map[string]struct {
		mine, theirs []hold.Option
		change       func(r relayed)
	}{
		"fixed":                 {mine: []hold.Option{hold.FixedLease(time.Second)}, theirs: []hold.Option{hold.FixedLease(time.Second)}},
		"bounded":               {mine: []hold.Option{hold.MaxHold(time.Second)}, theirs: []hold.Option{hold.MaxHold(time.Second)}},
		"another lease":         {theirs: []hold.Option{hold.Lease(time.Second)}},
		"replicas":              {theirs: []hold.Option{hold.Replicas(1, time.Second)}},
		"nobody waits":          {change: func(r relayed) { r.local.remove(&r.local.first.value.place) }},
		"over":                  {change: func(r relayed) { r.holder.phase = ended }},
		"closing":               {change: func(r relayed) { r.hall.shut() }},
		"nothing is in the way": {},
	} {
		t.Run(name, func(t *testing.T) {
			h := newTestHall(t)
			r := newRelayed(t, h, c.mine...)
			w := r.wait(mutexRequest(t, c.theirs...))
			r.mu.Lock()
			defer r.mu.Unlock()
			phase := r.holder.phase
			if c.change != nil {
				c.change(r)
			}
			heir := r.holder.heir(tenure.Now())
			if passed := heir != nil; passed != (name == "nothing is in the way") {
				t.Errorf("passed on: %t", passed)
			}
			r.holder.phase = phase
			r.local.remove(&w.place)
		})
	}
}

// A third of what lasts without a renewal must be left.
func TestWhatIsNearlyOverIsNotPassedOn(t *testing.T) {
	r := newRelayed(t, newTestHall(t), hold.Lease(3*time.Second))
	if ample := r.holder.ample(); ample != time.Second {
		t.Errorf("of a lease of 3 s %v must be left", ample)
	}
	if r.holder.claim = 300 * time.Millisecond; r.holder.ample() != ms(100) {
		t.Errorf("of a claim of 300 ms %v must be left", r.holder.ample())
	}
	w := r.wait(r.request)
	r.holder.unwatch() // it reads the terms
	r.holder.claim = 24 * time.Hour
	r.holder.tenure.Terms = &tenure.Terms{Lease: 24 * time.Hour}
	passed, depth, err := r.holder.leave(r.holder.share)
	if passed || depth != 0 || err != nil {
		t.Errorf("passed on %t, depth %d, %v", passed, depth, err)
	}
	r.mu.Lock()
	r.local.remove(&w.place)
	r.mu.Unlock()
	if err := r.holder.giveBack(); err != nil {
		t.Error(err)
	}
}

// The wait ends just when the waiter is given the tenure: the one behind has it then.
func TestAPassThatNobodyTakesGoesOn(t *testing.T) {
	r := newRelayed(t, newTestHall(t))
	first, second := r.wait(r.request), r.wait(r.request)
	token := r.holder.share.Token()
	if passed, _, err := r.holder.leave(r.holder.share); !passed || err != nil {
		t.Fatalf("passed on %t, %v", passed, err)
	}
	r.abandon(first)
	select {
	case err := <-second.ready:
		if err != nil || second.how != hold.Passed || second.share.Token() != token+2 {
			t.Errorf("%v, %v, token %d after %d", err, second.how, second.share.Token(), token)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("the one behind got nothing")
	}
	if _, err := r.holder.take(first.share); !errors.Is(err, tenure.ErrReleased) {
		t.Errorf("the first one's share: %v", err)
	}
	if err := r.holder.Release(context.Background(), second.share); err != nil {
		t.Error(err)
	}
}

// The tenure ends just when the waiter is given it: nobody has a hold that was lost before it began.
func TestAPassOfWhatIsLostIsNoHold(t *testing.T) {
	r := newRelayed(t, newTestHall(t))
	w := r.wait(r.request)
	if passed, _, err := r.holder.leave(r.holder.share); !passed || err != nil {
		t.Fatalf("passed on %t, %v", passed, err)
	}
	r.holder.Lose()
	if h, err := r.holder.take(w.share); h != nil || !errors.Is(err, tenure.ErrLost) {
		t.Errorf("%v, %v", h, err)
	}
}
