package tenure_test

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/tenure"
)

func init() { tenure.IgnoreSuspends() } // the tests run in virtual time

// tenant is told of the end.
type tenant func(error)

func (tenant) Lock() (name, key string) { return "orders", "mutex:orders" }
func (tenant) Identity() tenure.Owner   { return tenure.Owner{Client: "c", N: 1} }
func (t tenant) Ended(cause error) {
	if t != nil {
		t(cause)
	}
}

func lasting(d time.Duration, terms tenure.Terms, onEnd tenant) *tenure.Tenure {
	now := tenure.Now()
	return tenure.New(onEnd, &terms, 7, now, now.Add(d))
}

func join(t *testing.T, of *tenure.Tenure, weight int64) *tenure.Share {
	t.Helper()
	s, err := of.Join(weight)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMarginIsATenthButAtLeastTwentyMilliseconds(t *testing.T) {
	for lease, want := range map[time.Duration]time.Duration{
		100 * time.Millisecond: 20 * time.Millisecond,
		time.Second:            100 * time.Millisecond,
		30 * time.Second:       3 * time.Second,
	} {
		if got := tenure.Margin(lease); got != want {
			t.Errorf("margin of %v is %v, want %v", lease, got, want)
		}
	}
}

func TestADeadlineThatPassedUnnoticedIsALossAtTheFirstLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := 0
		of := lasting(time.Second, tenure.Terms{Lease: time.Second}, func(error) { ended++ })
		s := join(t, of, 1)
		done := s.Done()
		time.Sleep(time.Second - time.Nanosecond)
		if s.Err() != nil {
			t.Fatalf("ended early: %v", s.Err())
		}
		time.Sleep(time.Nanosecond)
		if _, _, err := s.Leave(); !errors.Is(err, tenure.ErrLost) {
			t.Errorf("leaving after the deadline gives %v, want a loss", err)
		}
		<-done
		if !errors.Is(s.Err(), tenure.ErrLost) || of.Alive() || ended != 1 {
			t.Errorf("err %v, alive %v, told %d times", s.Err(), of.Alive(), ended)
		}
		if _, err := of.Join(1); !errors.Is(err, tenure.ErrLost) {
			t.Errorf("joining an ended tenure gives %v", err)
		}
	})
}

func TestProlongNeverShortensAndNeverRevives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := lasting(10*time.Second, tenure.Terms{Lease: 10 * time.Second}, nil)
		first := of.Deadline()
		if of.Prolong(tenure.Now(), time.Second, 0, tenure.Now()); of.Deadline() != first {
			t.Errorf("a shorter lease moved the deadline from %v to %v", first, of.Deadline())
		}
		sent := tenure.Now()
		if of.Prolong(sent, 20*time.Second, 0, tenure.Now()); of.Deadline() != sent.Add(18*time.Second) {
			t.Errorf("the deadline is %v after the request was sent, want 18s", of.Deadline().Sub(sent))
		}
		time.Sleep(18 * time.Second)
		if of.Prolong(tenure.Now(), time.Hour, 0, tenure.Now()) || of.Alive() {
			t.Error("an answer after the deadline revived the tenure")
		}
	})
}

func TestMaxHoldIsALimitThatRenewalsDoNotMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := lasting(time.Second, tenure.Terms{Lease: time.Second, MaxHold: 3 * time.Second}, nil)
		for range 5 {
			time.Sleep(500 * time.Millisecond)
			of.Prolong(tenure.Now(), time.Second, 0, tenure.Now())
		}
		if !of.Alive() {
			t.Fatal("lost before its MaxHold")
		}
		time.Sleep(500 * time.Millisecond)
		if err := of.Cause(); !errors.Is(err, tenure.ErrLost) || !strings.Contains(err.Error(), "MaxHold of 3s") {
			t.Errorf("the cause is %v", err)
		}
	})
}

func TestTheLongestMaxHoldIsNoLimit(t *testing.T) {
	of := lasting(time.Hour, tenure.Terms{Lease: time.Hour, MaxHold: 1<<63 - 1}, nil)
	if !of.Alive() || of.Deadline().Until() < time.Minute {
		t.Errorf("alive %v, %v left: %v", of.Alive(), of.Deadline().Until(), of.Cause())
	}
}

func TestALossNamesTheLastRenewalError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := lasting(time.Second, tenure.Terms{Lease: time.Second}, nil)
		of.Failed(errors.New("connection refused"))
		time.Sleep(time.Second)
		if err := of.Cause(); !strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), `"orders"`) {
			t.Errorf("the cause is %v", err)
		}
	})
}

func TestSharesLeaveInAnyOrder(t *testing.T) {
	of := lasting(time.Hour, tenure.Terms{Lease: time.Hour}, func(error) { t.Error("a release was told as a loss") })
	write, read := join(t, of, 100), join(t, of, 1)
	if depth, weight := of.Level(); depth != 2 || weight != 100 {
		t.Errorf("depth %d and weight %d", depth, weight)
	}
	if depth, weight, err := write.Leave(); depth != 1 || weight != 1 || err != nil {
		t.Errorf("after the write left: depth %d, weight %d, %v", depth, weight, err)
	}
	if _, _, err := write.Leave(); !errors.Is(err, tenure.ErrReleased) {
		t.Errorf("leaving twice gives %v", err)
	}
	if read.Err() != nil {
		t.Errorf("the read ended with the write: %v", read.Err())
	}
	if depth, _, err := read.Leave(); depth != 0 || err != nil || of.Alive() {
		t.Errorf("after all left: depth %d, %v, alive %v", depth, err, of.Alive())
	}
}

// The check and the joining are one step: a write hold released in between must not leave an upgrade behind.
func TestNoShareWeighsMoreThanTheHeaviest(t *testing.T) {
	of := lasting(time.Hour, tenure.Terms{Lease: time.Hour}, nil)
	write := join(t, of, 100)
	again := func(weight int64) error { _, err := write.Join(weight); return err }
	for _, weight := range []int64{1, 100} {
		if err := again(weight); err != nil {
			t.Errorf("joining with %d gives %v", weight, err)
		}
	}
	if err := again(101); !errors.Is(err, tenure.ErrUpgrade) {
		t.Errorf("joining above the heaviest gives %v", err)
	}
	_, _, _ = write.Leave()
	if err := again(100); err != nil {
		t.Errorf("joining beside what a share left behind gives %v", err)
	}
}

// Who passed its tenure on is outside: with its context the next holder must not be joined.
func TestASessionThatHasEndedCannotBeJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := lasting(time.Hour, tenure.Terms{Lease: time.Hour}, nil)
		first := join(t, of, 1)
		time.Sleep(time.Millisecond)
		second, depth, _, err := first.Pass(time.Minute)
		if second == nil || depth != 0 || err != nil || second.Token() != first.Token()+1 || of.Base() != of.Token() {
			t.Fatalf("passing on gives %v, depth %d, %v", second, depth, err)
		}
		if _, err := first.Join(1); !errors.Is(err, tenure.ErrReleased) {
			t.Errorf("joining a session that has ended gives %v", err)
		}
		if _, err := second.Join(1); err != nil {
			t.Errorf("joining the next one gives %v", err)
		}
		if next, depth, _, err := second.Pass(time.Minute); next != nil || depth != 1 || err != nil {
			t.Errorf("passing on with one left inside gives %v, depth %d, %v", next, depth, err)
		}
	})
}

func TestATenureIsNotPassedOnShortlyBeforeItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := join(t, lasting(time.Minute, tenure.Terms{Lease: time.Minute}, nil), 1)
		time.Sleep(time.Second)
		if next, _, _, err := late.Pass(time.Minute); next != nil || err != nil {
			t.Errorf("passed on shortly before its deadline: %v, %v", next, err)
		}
	})
}

// passes passes a tenure on as often as it goes, and returns the last token.
func passes(t *testing.T, s *tenure.Share) (n int, last int64) {
	t.Helper()
	for last = s.Token(); ; n++ {
		next, _, _, err := s.Pass(time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if next == nil {
			return n, last
		}
		if next.Token() <= last || !tenure.PassedOn(next.Token()) {
			t.Fatalf("token %d after %d", next.Token(), last)
		}
		s, last = next, next.Token()
	}
}

func TestATenureIsPassedOnUntilItsTokensAreUsedUp(t *testing.T) {
	of := lasting(time.Hour, tenure.Terms{Lease: time.Hour}, nil)
	first := join(t, of, 1)
	if first.Token() != tenure.FirstToken(7) || tenure.PassedOn(first.Token()) {
		t.Errorf("the first session has token %d", first.Token())
	}
	n, last := passes(t, first)
	if n != 1023 || last != tenure.FirstToken(8)-1 || of.Base() != 7 || of.Alive() {
		t.Errorf("passed on %d times, to token %d, base %d, alive %t", n, last, of.Base(), of.Alive())
	}
}

func TestAProofGivesNewTokens(t *testing.T) {
	for name, c := range map[string]struct {
		before int     // sessions passed on before the proofs
		proofs []int64 // ms
		base   int64   // of the next session
	}{
		"none":                 {0, nil, 7},
		"at once":              {0, []int64{5}, 4999},
		"after some":           {10, []int64{5}, 4999},
		"before the last":      {1022, []int64{5}, 4999},
		"when all are used up": {1023, []int64{5}, 4999},
		"out of order":         {3, []int64{6, 5}, 5999},
		"twice":                {3, []int64{5, 6}, 5999},
		"a clock gone back":    {3, []int64{0}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			of := lasting(time.Hour, tenure.Terms{Lease: time.Hour}, nil)
			s := join(t, of, 1)
			for range c.before {
				s, _, _, _ = s.Pass(time.Minute)
			}
			before := s.Token()
			for _, now := range c.proofs {
				of.Prolong(tenure.Now(), 0, now, tenure.Now())
			}
			if of.Base() != 7 {
				t.Errorf("the base is %d before anybody has a token of it", of.Base())
			}
			if again, err := s.Join(1); err != nil || again.Token() != before {
				t.Errorf("a re-entry has token %d, %v", again.Token(), err)
			} else if _, _, err := again.Leave(); err != nil {
				t.Error(err)
			}
			next, _, _, err := s.Pass(time.Minute)
			if next == nil || err != nil {
				t.Fatalf("not passed on: %v", err)
			}
			if next.Token() <= before || tenure.BaseOf(next.Token()) != c.base || of.Base() != c.base || !tenure.PassedOn(next.Token()) {
				t.Errorf("token %d, base %d, after %d", next.Token(), of.Base(), before)
			}
			if n, _ := passes(t, next); c.base != 7 && n != 1022 {
				t.Errorf("passed on %d times after the proof's first session", n)
			}
		})
	}
}

// What somebody else may have been granted since: a proof that comes after the end is none.
func TestAProofOfWhatHasEndedCountsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := lasting(time.Second, tenure.Terms{Lease: time.Second}, nil)
		s := join(t, of, 1)
		time.Sleep(time.Second)
		of.Prolong(tenure.Now(), 0, 5, tenure.Now())
		if next, _, _, err := s.Pass(0); next != nil || !errors.Is(err, tenure.ErrLost) || of.Base() != 7 {
			t.Errorf("%v, %v, base %d", next, err, of.Base())
		}
	})
}

func TestTokensFitIntoSixtyFourBits(t *testing.T) {
	for _, at := range []time.Time{time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2255, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if text := strconv.FormatInt(tenure.FirstToken(at.UnixMicro()), 10); len(text) != 19 || text[0] == '-' {
			t.Errorf("the token of %v is %s", at, text)
		}
	}
	if token := tenure.FirstToken(1<<63 - 1); token <= 0 { // of a damaged hash
		t.Errorf("the token of what the server cannot count is %d", token)
	}
}

func TestDoneIsClosedOnceHoweverManyAsk(t *testing.T) {
	for range 200 {
		of := lasting(time.Hour, tenure.Terms{Lease: time.Hour}, nil)
		s := join(t, of, 1)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { <-s.Done() })
			wg.Go(func() { of.End(tenure.ErrClosed) })
			wg.Go(func() { _, _, _ = s.Leave() })
		}
		wg.Wait()
	}
}

func TestWatchersAreToldOnceAndCanBeTakenBack(t *testing.T) {
	of := lasting(time.Hour, tenure.Terms{Lease: time.Hour}, nil)
	s := join(t, of, 1)
	var told []error
	s.OnEnd(func(err error) { told = append(told, err) })
	stop := s.OnEnd(func(error) { t.Error("told although taken back") })
	stop()
	of.End(tenure.ErrClosed)
	of.End(tenure.ErrLost)
	s.OnEnd(func(err error) { told = append(told, err) })
	if len(told) != 2 || !errors.Is(told[0], tenure.ErrClosed) || !errors.Is(told[1], tenure.ErrClosed) {
		t.Errorf("told %v", told)
	}
}
