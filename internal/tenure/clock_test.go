package tenure

import (
	"testing"
	"time"
)

func TestTheFarthestInstantIsFarAway(t *testing.T) {
	now := Now()
	if far := now.Add(1<<63 - 1); far.Sub(now) < time.Hour {
		t.Errorf("the farthest instant is %v away", far.Sub(now))
	}
	if at := now.Add(time.Minute); at.Until() > time.Minute || at.Until() < 50*time.Second || !at.After(now) || Earlier(at, now) != now {
		t.Errorf("a minute ahead is %v away", at.Until())
	}
}

func TestLatelyIsNeverLaterThanNow(t *testing.T) {
	last := Lately()
	for range 100_000 {
		lately := Lately()
		now := Now()
		if lately.After(now) || last.After(lately) {
			t.Fatalf("lately is %v after now, %v after the one before", lately.Sub(now), lately.Sub(last))
		}
		last = lately
	}
	least := time.Hour
	for range 1000 {
		least = min(least, Now().Sub(Lately()).Abs())
	}
	if least > time.Millisecond {
		t.Errorf("at least %v apart", least)
	}
}
