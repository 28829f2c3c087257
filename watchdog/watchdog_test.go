package watchdog_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/scripts"
	"github.com/holdfast-go/holdfast/internal/tenure"
	"github.com/holdfast-go/holdfast/watchdog"
)

func init() { tenure.IgnoreSuspends() } // the tests run in virtual time

// server answers renewals as told and notes when they came.
type server struct {
	mu      sync.Mutex
	answer  func(scripts.Renew) (scripts.Renewed, *scripts.Failure)
	at      map[string][]time.Time // by owner
	batches []int
}

func (s *server) Node(_ context.Context, key string) string { return strings.SplitN(key, "/", 2)[0] }

func (s *server) RenewAll(_ context.Context, rs []scripts.Renew) ([]scripts.Renewed, []*scripts.Failure) {
	answers, failures := make([]scripts.Renewed, len(rs)), make([]*scripts.Failure, len(rs))
	s.mu.Lock()
	s.batches = append(s.batches, len(rs))
	for _, r := range rs {
		s.at[r.Owner.String()] = append(s.at[r.Owner.String()], time.Now())
	}
	s.mu.Unlock()
	for i, r := range rs {
		answers[i], failures[i] = s.answer(r)
	}
	return answers, failures
}

// times returns how long after start the owner's renewals came.
func (s *server) times(owner string, start time.Time) (ds []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.at[owner] {
		ds = append(ds, at.Sub(start))
	}
	return ds
}

func granted(r scripts.Renew) (scripts.Renewed, *scripts.Failure) {
	return scripts.Renewed{Held: true, Token: r.Token}, nil
}

func refused(scripts.Renew) (scripts.Renewed, *scripts.Failure) {
	return scripts.Renewed{}, scripts.NewFailure(io.EOF)
}

func start(t *testing.T, answer func(scripts.Renew) (scripts.Renewed, *scripts.Failure)) (*server, *watchdog.Watchdog) {
	s := &server{answer: answer, at: map[string][]time.Time{}}
	w := watchdog.New(s, func(string, ...any) {}, nil)
	t.Cleanup(func() { w.Close(context.Background()) })
	return s, w
}

// tenant is the owner "c:<n>" of a key.
type tenant struct {
	key string
	n   uint64
}

func (t tenant) Lock() (name, key string) { return "n", t.key }
func (t tenant) Identity() tenure.Owner   { return tenure.Owner{Client: "c", N: t.n} }
func (tenant) Ended(error)                {}

func lasting(key string, n uint64, terms tenure.Terms) *tenure.Tenure {
	now := tenure.Now()
	return tenure.New(tenant{key, n}, &terms, 1, now, now.Add(terms.Lease-tenure.Margin(terms.Lease)))
}

func TestALeaseIsRenewedEveryThirdOfItOrSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := start(t, granted)
		began := time.Now()
		of := lasting("k", 1, tenure.Terms{Lease: 30 * time.Second})
		w.Add(new(watchdog.Watch), of)
		time.Sleep(time.Hour)
		if !of.Alive() {
			t.Fatal(of.Cause())
		}
		last := time.Duration(0)
		times := s.times("c:1", began)
		for _, at := range times {
			if gap := at - last; gap < 8*time.Second || gap > 10*time.Second {
				t.Fatalf("%v between two renewals", gap)
			}
			last = at
		}
		if len(times) < 360 {
			t.Errorf("only %d renewals in an hour", len(times))
		}
	})
}

func TestAFailedRenewalIsTriedAgainAtOnceAndThenUntilTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := start(t, refused)
		began := time.Now()
		of := lasting("k", 1, tenure.Terms{Lease: 9 * time.Second})
		share, _ := of.Join(1)
		w.Add(new(watchdog.Watch), of)
		<-share.Done()
		if lost := time.Since(began); lost != 9*time.Second-900*time.Millisecond {
			t.Errorf("lost after %v, want the lease less its margin", lost)
		}
		times := s.times("c:1", began)
		if len(times) < 10 || times[1] != times[0] || times[2]-times[1] > 51*time.Millisecond {
			t.Errorf("attempts at %v", times)
		}
		for i := 1; i < len(times); i++ {
			if gap := times[i] - times[i-1]; gap > 9*time.Second/30 {
				t.Errorf("%v without an attempt, at most a thirtieth of the lease is right", gap)
			}
		}
		if !errors.Is(of.Cause(), tenure.ErrLost) || !strings.Contains(of.Cause().Error(), "no renewal went through") {
			t.Errorf("the cause is %v", of.Cause())
		}
	})
}

func TestAnOutageShorterThanTheLeaseLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, w := start(t, func(r scripts.Renew) (scripts.Renewed, *scripts.Failure) {
			if d := time.Since(began); d > 20*time.Second && d < 35*time.Second {
				return refused(r)
			}
			return granted(r)
		})
		of := lasting("k", 1, tenure.Terms{Lease: 30 * time.Second})
		w.Add(new(watchdog.Watch), of)
		time.Sleep(5 * time.Minute)
		if !of.Alive() {
			t.Error(of.Cause())
		}
	})
}

func TestWhatTheServerNoLongerKnowsIsLostAtOnce(t *testing.T) {
	for name, answer := range map[string]scripts.Renewed{"gone": {}, "another tenure": {Held: true, Token: 99}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, w := start(t, func(scripts.Renew) (scripts.Renewed, *scripts.Failure) { return answer, nil })
				began := time.Now()
				of := lasting("k", 1, tenure.Terms{Lease: 30 * time.Second})
				share, _ := of.Join(1)
				w.Add(new(watchdog.Watch), of)
				<-share.Done()
				if d := time.Since(began); d > 10*time.Second || w.Len() != 0 {
					t.Errorf("lost after %v, %d still minded", d, w.Len())
				}
			})
		})
	}
}

// A fixed lease is not renewed, but looked after: its holder learns of a loss like any other.
func TestAFixedLeaseIsLookedAfterButNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, w := start(t, func(r scripts.Renew) (scripts.Renewed, *scripts.Failure) {
			if r.Lease > 100*time.Millisecond {
				t.Errorf("asked for a lease of %v", r.Lease)
			}
			return granted(r)
		})
		began := time.Now()
		of := lasting("k", 1, tenure.Terms{Lease: 10 * time.Second, Fixed: true})
		share, _ := of.Join(1)
		w.Add(new(watchdog.Watch), of)
		<-share.Done()
		if d := time.Since(began); d != 9*time.Second {
			t.Errorf("ended after %v", d)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		_, w := start(t, func(scripts.Renew) (scripts.Renewed, *scripts.Failure) { return scripts.Renewed{}, nil })
		began := time.Now()
		of := lasting("k", 1, tenure.Terms{Lease: 30 * time.Second, Fixed: true})
		share, _ := of.Join(1)
		w.Add(new(watchdog.Watch), of)
		<-share.Done()
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("the loss was told after %v", d)
		}
	})
}

// A pushed grant has only its claim: the first renewal sets the lease.
func TestAClaimIsRenewedAfterAThirdOrAtOnceIfLittleIsLeft(t *testing.T) {
	for left, want := range map[time.Duration]time.Duration{2 * time.Second: time.Second, time.Second: 0} {
		synctest.Test(t, func(t *testing.T) {
			s, w := start(t, granted)
			began := time.Now()
			now := tenure.Now()
			of := tenure.New(tenant{"k", 1}, &tenure.Terms{Lease: 20 * time.Second}, 1, now, now.Add(left))
			w.AddClaim(new(watchdog.Watch), of, 3*time.Second)
			time.Sleep(10 * time.Second)
			if times := s.times("c:1", began); len(times) < 2 || times[0] != want {
				t.Errorf("with %v left of the claim: renewed at %v, want first at %v", left, times, want)
			}
			if !of.Alive() {
				t.Error(of.Cause())
			}
		})
	}
}

// A fixed lease counts from the grant, and is set once and for all.
func TestAClaimOfAFixedLeaseIsRenewedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := start(t, granted)
		began := time.Now()
		now := tenure.Now()
		of := tenure.New(tenant{"k", 1}, &tenure.Terms{Lease: 20 * time.Second, Fixed: true}, 1, now, now.Add(2*time.Second))
		share, _ := of.Join(1)
		w.AddClaim(new(watchdog.Watch), of, 3*time.Second)
		<-share.Done()
		if times, d := s.times("c:1", began), time.Since(began); times[0] != 0 || d != 18*time.Second {
			t.Errorf("renewed at %v, ended after %v", times, d)
		}
	})
}

func TestAHangingNodeDelaysNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, w := start(t, func(r scripts.Renew) (scripts.Renewed, *scripts.Failure) {
			if strings.HasPrefix(r.Key, "dead/") {
				time.Sleep(time.Minute)
				return refused(r)
			}
			return granted(r)
		})
		terms := tenure.Terms{Lease: 10 * time.Second}
		dead, alive := lasting("dead/k", 1, terms), lasting("alive/k", 2, terms)
		w.Add(new(watchdog.Watch), dead)
		w.Add(new(watchdog.Watch), alive)
		time.Sleep(5 * time.Minute)
		if dead.Alive() || !alive.Alive() {
			t.Errorf("on the hanging node alive: %v; on the other: %v", dead.Alive(), alive.Alive())
		}
	})
}

// A request that gets no answer is not waited for: another is sent beside it.
func TestALostReplyCostsATenthOfTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hung atomic.Bool
		s, w := start(t, func(r scripts.Renew) (scripts.Renewed, *scripts.Failure) {
			if hung.CompareAndSwap(false, true) {
				time.Sleep(time.Hour)
			}
			return granted(r)
		})
		began := time.Now()
		of := lasting("k", 1, tenure.Terms{Lease: 30 * time.Second})
		w.Add(new(watchdog.Watch), of)
		time.Sleep(time.Minute)
		times := s.times("c:1", began)
		if !of.Alive() || times[1]-times[0] != 3*time.Second {
			t.Errorf("alive %v, attempts at %v", of.Alive(), times)
		}
		time.Sleep(time.Hour)
	})
}

// A claim is short: a first renewal that hangs must not use it up.
func TestAHangingFirstRenewalDoesNotLoseAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hung atomic.Bool
		_, w := start(t, func(r scripts.Renew) (scripts.Renewed, *scripts.Failure) {
			if hung.CompareAndSwap(false, true) {
				time.Sleep(time.Hour)
			}
			return granted(r)
		})
		now := tenure.Now()
		of := tenure.New(tenant{"k", 1}, &tenure.Terms{Lease: 30 * time.Second}, 1, now, now.Add(2700*time.Millisecond))
		w.AddClaim(new(watchdog.Watch), of, 3*time.Second)
		time.Sleep(time.Minute)
		if !of.Alive() {
			t.Error(of.Cause())
		}
		time.Sleep(time.Hour)
	})
}

// An answer that took most of the lease leaves little of it: it is renewed at once.
func TestAHoldFromASlowAnswerIsRenewedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := start(t, granted)
		began := time.Now()
		now := tenure.Now()
		of := tenure.New(tenant{"k", 1}, &tenure.Terms{Lease: 3 * time.Second}, 1, now, now.Add(700*time.Millisecond))
		w.Add(new(watchdog.Watch), of)
		time.Sleep(time.Minute)
		if times := s.times("c:1", began); !of.Alive() || times[0] != 0 {
			t.Errorf("renewed at %v; %v", times, of.Cause())
		}
	})
}

func TestThousandsOfHoldsLeaveInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := start(t, granted)
		var all []*tenure.Tenure
		for i := range 5000 {
			of := lasting("k", uint64(i), tenure.Terms{Lease: 30 * time.Second})
			all = append(all, of)
			w.Add(new(watchdog.Watch), of)
		}
		time.Sleep(2 * time.Minute)
		for _, of := range all {
			if !of.Alive() {
				t.Fatal(of.Cause())
			}
		}
		for _, n := range s.batches {
			if n > 100 {
				t.Fatalf("a batch of %d", n)
			}
		}
	})
}

func TestWhatIsRemovedIsRenewedNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := start(t, granted)
		of := lasting("k", 1, tenure.Terms{Lease: 30 * time.Second})
		v := new(watchdog.Watch)
		w.Add(v, of)
		time.Sleep(15 * time.Second)
		w.Remove(v)
		w.Remove(v)
		before := len(s.times("c:1", time.Now()))
		time.Sleep(time.Minute)
		if after := len(s.times("c:1", time.Now())); after != before || w.Len() != 0 {
			t.Errorf("%d renewals before, %d after, %d minded", before, after, w.Len())
		}
	})
}
