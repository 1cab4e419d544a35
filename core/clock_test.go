package ratetier

import (
	"testing"
	"time"
)

func TestTheSystemsTimeNeverGoesBack(t *testing.T) {
	timeline := newTimeline(nil)
	last := timeline.now()
	for range 10_000 {
		now := timeline.now()
		if now < last {
			t.Fatalf("%d came after %d", now, last)
		}
		last = now
	}
	if off := time.Since(time.Unix(0, last)).Abs(); off > time.Minute {
		t.Errorf("it is %v off the wall clock", off)
	}
}

// A step of the wall clock moves what is shown, and not what limits are reckoned in.
func TestAStepOfTheWallClockIsOnlyShown(t *testing.T) {
	timeline := newTimeline(nil)
	now := timeline.now()
	timeline.startAt -= int64(time.Hour) // as if the wall clock had been set forward since
	if got := timeline.now(); got > now-int64(59*time.Minute) {
		t.Errorf("limits are reckoned in the time shown")
	}
	shown := time.Unix(0, timeline.wall(timeline.now()))
	if off := time.Since(shown).Abs(); off > time.Minute {
		t.Errorf("what is shown is %v off the wall clock", off)
	}
	timeline.skew.Store(int64(time.Second))
	soon := timeline.now() + int64(time.Second)/2
	if got := timeline.wall(soon); got != soon+int64(time.Second) {
		t.Errorf("the wall clock was asked again within a second")
	}
}
