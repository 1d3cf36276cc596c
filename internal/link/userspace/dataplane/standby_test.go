package dataplane

import "testing"

// A thread is on stand-by while the first sleeps often, and at once no longer when it does not.
func TestStandby(t *testing.T) {
	var s standby
	now, sleeps := standbySpan, int64(0)
	pass := func(time, n int64) {
		now, sleeps = now+time, sleeps+n
		s.watch(now, sleeps)
	}
	pass(standbySpan, standbyFrom-1)
	if s.naps {
		t.Error("few sleeps of the first thread put the second on stand-by")
	}
	pass(standbySpan, standbyFrom)
	if !s.naps {
		t.Fatal("many sleeps of the first thread do not put the second on stand-by")
	}
	pass(glance, 2)
	if !s.relies(sleeps) {
		t.Error("the first thread sleeps, and is not relied on")
	}
	if s.relies(sleeps) || s.naps {
		t.Error("the first thread has not slept for a glance, and is relied on")
	}
	pass(standbySpan, 10*standbyFrom)
	pass(20*standbySpan, 10*standbyFrom)
	if s.naps {
		t.Error("it is on stand-by though the sleeps have become few")
	}
}
