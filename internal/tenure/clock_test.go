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
