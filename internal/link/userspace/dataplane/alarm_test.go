package dataplane

import (
	"testing"
	"time"
)

// A lead is what a wake-up takes, after sleeps as long as this one.
func TestAlarmLearnsTheLead(t *testing.T) {
	const us = int64(time.Microsecond)
	sleeps := []struct{ sleep, late int64 }{{100 * us, 15 * us}, {5000 * us, 60 * us}}
	var a alarm
	now := int64(0)
	for range 200 {
		for _, s := range sleeps {
			now += a.set(now, now+s.sleep) + s.late
			a.observe(now, true)
		}
	}
	for _, s := range sleeps {
		due := now + s.sleep
		now += a.set(now, due) + s.late
		if off := due - now; off < -us || off > 6*us {
			t.Errorf("after a sleep of %v woken %v before due, want at most 6 us", time.Duration(s.sleep), time.Duration(off))
		}
		a.observe(now, true)
	}
	for _, s := range sleeps {
		if got, want := a.wakeLatency(s.sleep), min(s.late, maxUsual); got > want+us || got < want-us {
			t.Errorf("waking up after %v is said to take %v, want %v", time.Duration(s.sleep), time.Duration(got), time.Duration(want))
		}
	}
	for range 200 {
		now += a.set(now, now+int64(time.Second)) + int64(time.Second)
		a.observe(now, true)
	}
	if got := a.lead[1]; got > maxLead {
		t.Errorf("the lead grew to %v", time.Duration(got))
	}
}
