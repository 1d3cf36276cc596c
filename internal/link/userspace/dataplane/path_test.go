package dataplane

import (
	"math/rand/v2"
	"testing"
	"time"

	"skerry/internal/link"
	"skerry/internal/link/userspace/shaper"
)

// answers trains a path with round trips whose directions take between a minimum and ten times that.
func answers(c *path, n int, least time.Duration, ahead, now int64) int64 {
	random := rand.New(rand.NewPCG(1, 2))
	way := func() int64 { return int64(least) + int64(random.ExpFloat64()*float64(least)) }
	for range n {
		there := now + way()
		back := there + way()
		c.addSample(now, there+ahead, back)
		now = back + int64(250*time.Millisecond)
	}
	return now
}

// For any clock offset of the other machine and any round of the stamps, a packet is due when its sender requested, up
// to a fraction of the delay of its path.
func TestStampRoundTrip(t *testing.T) {
	const least = 100 * time.Microsecond
	for _, ahead := range []time.Duration{0, time.Second, -time.Second, 300 * 24 * time.Hour, -300 * 24 * time.Hour} {
		for _, age := range []time.Duration{0, 274 * time.Second, 10 * 24 * time.Hour} {
			var receiver, sender path
			now := answers(&receiver, 3, least, int64(ahead), int64(age))
			if got := receiver.decodeDue(sender.encodeDue(now), now); got != 0 {
				t.Fatalf("the peer's clock counts as known after three answers: due at %d", got)
			}
			now = answers(&receiver, maxSamples, least, int64(ahead), now)
			want := now + int64(time.Millisecond)
			if got := receiver.decodeDue(sender.encodeDue(want+int64(ahead)), now); time.Duration(got-want).Abs() > least {
				t.Errorf("clock %v ahead, at %v: due %v off", ahead, age, time.Duration(got-want))
			}
			if got := receiver.decodeDue(sender.encodeDue(now+int64(ahead)+int64(time.Minute)), now); got > now+maxHold {
				t.Errorf("a packet is held for %v", time.Duration(got-now))
			}
			past := now - int64(time.Minute)
			if got := receiver.decodeDue(sender.encodeDue(past+int64(ahead)), now); time.Duration(got-past).Abs() > least {
				t.Errorf("a packet that is a minute late is late by %v", time.Duration(now-got))
			}
		}
	}
}

// A fast round trip of long ago is replaced by newer ones, because the clocks may have drifted meanwhile.
func TestClockDrift(t *testing.T) {
	const apart = 100e-6 // more than they should
	var c path
	now := int64(0)
	for range 40 {
		there := now + int64(100*time.Microsecond)
		c.addSample(now, there+int64(apart*float64(there)), there+int64(100*time.Microsecond))
		now += int64(250 * time.Millisecond)
	}
	if off := time.Duration(c.offset.Load() - int64(apart*float64(now))); off.Abs() > 500*time.Microsecond {
		t.Errorf("clock error %v", off)
	}
}

// A clock that has jumped, for example on a suspended machine, is known again after as many answers as at first.
func TestClockJump(t *testing.T) {
	var c path
	now := answers(&c, maxSamples, time.Millisecond, 0, 0)
	now = answers(&c, minSamples-1, time.Millisecond, int64(time.Hour), now)
	if c.clockKnown.Load() {
		t.Error("a clock that has jumped counts as known")
	}
	answers(&c, 1, time.Millisecond, int64(time.Hour), now)
	if off := time.Duration(c.offset.Load()) - time.Hour; !c.clockKnown.Load() || off.Abs() > 2*time.Millisecond {
		t.Errorf("clock error %v, known: %v", off, c.clockKnown.Load())
	}
}

// No packet is sent ahead to a machine that does not know this machine's clock, over a real link, or before its last
// bit has left.
func TestSendAhead(t *testing.T) {
	const due = int64(time.Second)
	known := &path{}
	answers(known, maxSamples, time.Millisecond, 0, 0)
	known.peerClockKnown.Store(true)
	early := due - known.slow.Load() - margin
	unknown, real := &path{}, &path{real: true}
	real.peerClockKnown.Store(true)
	for name, tt := range map[string]struct {
		far           *path
		departs, want int64
	}{
		"within a machine": {nil, 0, due},
		"known":            {known, 0, early},
		"departs later":    {known, due - 1, due - 1},
		"not known":        {unknown, 0, due},
		"real":             {real, 0, due},
	} {
		d := &direction{path: tt.far, shaper: shaper.New(shaper.Compile(link.Quality{}), "a~b", "ab", 1)}
		if got := d.sendTime(due, tt.departs); got != tt.want {
			t.Errorf("%s: leaves %v before it is due, want %v", name, time.Duration(due-got), time.Duration(due-tt.want))
		}
	}
	for name, c := range map[string]*path{"within a machine": nil, "real": real} {
		if got := c.encodeDue(due); got != noStamp {
			t.Errorf("%s: the stamp is %d", name, got)
		}
	}
	if got := known.decodeDue(known.encodeDue(pastOthers), due); got != pastOthers {
		t.Errorf("an overtaking packet is due at %d", got)
	}
}
