package tenure_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/tenure"
)

func init() { tenure.IgnoreSuspends() } // the tests run in virtual time

type ender func(error)

func (e ender) Ended(cause error) {
	if e != nil {
		e(cause)
	}
}

func lasting(d time.Duration, terms tenure.Terms, onEnd ender) *tenure.Tenure {
	now := tenure.Now()
	return tenure.New("orders", "c:1", &terms, 7, now, now.Add(d), onEnd)
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
		if of.Prolong(tenure.Now(), time.Second); of.Deadline() != first {
			t.Errorf("a shorter lease moved the deadline from %v to %v", first, of.Deadline())
		}
		sent := tenure.Now()
		if of.Prolong(sent, 20*time.Second); of.Deadline() != sent.Add(18*time.Second) {
			t.Errorf("the deadline is %v after the request was sent, want 18s", of.Deadline().Sub(sent))
		}
		time.Sleep(18 * time.Second)
		if of.Prolong(tenure.Now(), time.Hour) || of.Alive() {
			t.Error("an answer after the deadline revived the tenure")
		}
	})
}

func TestMaxHoldIsALimitThatRenewalsDoNotMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := lasting(time.Second, tenure.Terms{Lease: time.Second, MaxHold: 3 * time.Second}, nil)
		for range 5 {
			time.Sleep(500 * time.Millisecond)
			of.Prolong(tenure.Now(), time.Second)
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
		if second == nil || depth != 0 || err != nil || second.Token() <= first.Token() || of.Last() != second.Token() {
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

func TestATenureIsPassedOnOnlyWhileTokensAndTimeAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := lasting(time.Hour, tenure.Terms{Lease: time.Hour}, nil)
		s := join(t, of, 1)
		time.Sleep(8 * time.Microsecond) // tokens 8 to 14
		for range 7 {
			if s, _, _, _ = s.Pass(time.Minute); s == nil {
				t.Fatal("not passed on within the time that has passed")
			}
		}
		if next, _, _, err := s.Pass(time.Minute); next != nil || err != nil || of.Alive() {
			t.Errorf("passed on ahead of time: %v, %v, alive %v", next, err, of.Alive())
		}
		late := join(t, lasting(time.Minute, tenure.Terms{Lease: time.Minute}, nil), 1)
		time.Sleep(time.Second)
		if next, _, _, err := late.Pass(time.Minute); next != nil || err != nil {
			t.Errorf("passed on shortly before its deadline: %v, %v", next, err)
		}
	})
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
