package dataplane

import "testing"

// A thread is on stand-by while the first gives many signs, and at once no longer when it gives none.
func TestStandby(t *testing.T) {
	var s standby
	now, signs := standbySpan, int64(0)
	pass := func(time, n int64) {
		now, signs = now+time, signs+n
		s.watch(now, signs)
	}
	pass(standbySpan, standbyFrom-1)
	if s.naps {
		t.Error("few signs of the first thread put the second on stand-by")
	}
	pass(standbySpan, standbyFrom)
	if !s.naps {
		t.Fatal("many signs of the first thread do not put the second on stand-by")
	}
	pass(glance, 2)
	if !s.covered(signs) {
		t.Error("the first thread goes on, and is not relied on")
	}
	if s.covered(signs) || s.naps {
		t.Error("the first thread gave no sign for a glance, and is relied on")
	}
	pass(standbySpan, 2*floodFrom)
	if s.glanceTime() != rareGlance {
		t.Error("a flood's glances are not rare")
	}
	pass(standbySpan, 10*standbyFrom)
	if s.glanceTime() != glance {
		t.Error("glances are rare without a flood")
	}
	pass(20*standbySpan, 10*standbyFrom)
	if s.naps {
		t.Error("it is on stand-by though signs have become few")
	}
}

// A packet taken in shows that the first thread goes on only where the others are not to help it.
func TestWhatShowsThatAThreadGoesOn(t *testing.T) {
	for helps, want := range map[bool]int64{true: 0, false: 1} {
		w := &worker{Plane: &Plane{options: Options{SpareCPU: helps}}}
		w.noteRead(7)
		if got := w.signs.Load(); got != want {
			t.Errorf("helps: %t: %d signs, want %d", helps, got, want)
		}
	}
}
