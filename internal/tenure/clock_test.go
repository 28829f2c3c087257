package tenure

import (
	"testing"
	"time"
)

// Not through the public constructor: the other tests run without the second clock.
func TestAnInstantHasPassedWhenEitherClockSaysSo(t *testing.T) {
	now := Instant{mono: time.Now(), boot: 1000 * time.Second}
	deadline := now.Add(10 * time.Second)
	slept := Instant{mono: now.mono.Add(time.Second), boot: now.boot + time.Minute} // suspended for most of a minute
	if left := deadline.Sub(slept); left >= 0 {
		t.Errorf("%v left after a suspend past the deadline", left)
	}
	if d := Earlier(deadline, slept.Add(20*time.Second)); d.Sub(slept) >= 0 {
		t.Errorf("the earlier of two instants is %v ahead, although one had passed by the second clock", d.Sub(slept))
	}
	worked := Instant{mono: now.mono.Add(time.Minute), boot: now.boot + time.Second}
	if left := deadline.Sub(worked); left >= 0 {
		t.Errorf("%v left although a minute passed", left)
	}
	if far := now.Add(1<<63 - 1); far.Sub(now) < time.Hour {
		t.Errorf("the farthest instant is %v away", far.Sub(now))
	}
}
