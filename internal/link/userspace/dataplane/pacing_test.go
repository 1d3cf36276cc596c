package dataplane

import (
	"testing"
	"time"
)

func TestFlowIsHeavyOnlyWhileGigabitsFlow(t *testing.T) {
	const packet = 64 << 10
	var f flow
	now := int64(0)
	carry := func(packets int, every int64) {
		for range packets {
			now += every
			f.add(now, packet)
		}
	}
	carry(100, flowSpan/4) // 2 Gbit/s
	if f.shouldPause() {
		t.Error("a moderate flow is delayed")
	}
	carry(100, flowSpan/32) // 16 Gbit/s
	if !f.shouldPause() {
		t.Error("a heavy flow is not detected")
	}
	f.gap = true
	if f.shouldPause() {
		t.Error("the thread pauses although no packet arrived during the last pause")
	}
	carry(1, flowSpan/32)
	if !f.shouldPause() {
		t.Error("a continuing flow is not detected")
	}
	carry(2, 10*flowSpan)
	if f.shouldPause() {
		t.Error("a flow that has ended still counts as heavy")
	}
}

// A plane that is busy for its whole permitted time uses at most 95 % of each second.
func TestRestStaysBelowKernelLimit(t *testing.T) {
	const second = int64(time.Second)
	const step = int64(100 * time.Microsecond)
	var r rest
	var rests []int64 // starts and ends, alternating
	r.begin(0)
	now := 3 * second // idle: gives at most the credit of one burst
	r.addIdle(0, now)
	begin, rested := now, int64(0)
	for now < 10*second {
		now += step
		if owed := r.owed(now); owed > 0 {
			r.addIdle(now, now+owed)
			rests = append(rests, now, now+owed)
			now += owed
			rested += owed
		}
	}
	for from := begin; from < 9*second; from += second / 20 {
		busy := second
		for i := 0; i < len(rests); i += 2 {
			busy -= max(0, min(rests[i+1], from+second)-max(rests[i], from))
		}
		if busy > second*95/100 {
			t.Fatalf("busy for %v of the second that starts at %v", time.Duration(busy), time.Duration(from))
		}
	}
	if most := (now - begin) / 10; rested > most {
		t.Errorf("rested for %v, more than a tenth of the time", time.Duration(rested))
	}
}

// A thread is on standby while the first thread shows many signs of progress, and stops immediately when it shows none.
func TestStandby(t *testing.T) {
	var s standby
	now, signs := standbySpan, int64(0)
	pass := func(time, n int64) {
		now, signs = now+time, signs+n
		s.watch(now, signs)
	}
	pass(standbySpan, standbyFrom-1)
	if s.naps {
		t.Error("the second thread is on standby after few signs of progress")
	}
	pass(standbySpan, standbyFrom)
	if !s.naps {
		t.Fatal("the second thread is not on standby after many signs of progress")
	}
	pass(glance, 2)
	if !s.covered(signs) {
		t.Error("the first thread makes progress, but the second is not on standby")
	}
	if s.covered(signs) || s.naps {
		t.Error("the first thread made no progress, but the second is still on standby")
	}
	pass(standbySpan, 2*floodFrom)
	if s.glanceTime() != rareGlance {
		t.Error("checks are frequent during a flood")
	}
	pass(standbySpan, 10*standbyFrom)
	if s.glanceTime() != glance {
		t.Error("checks are rare without a flood")
	}
	pass(20*standbySpan, 10*standbyFrom)
	if s.naps {
		t.Error("the second thread is on standby after signs of progress have become rare")
	}
}

// A received packet is a sign of progress of the first thread only if the others do not help.
func TestSignsOfProgress(t *testing.T) {
	for helps, want := range map[bool]int64{true: 0, false: 1} {
		w := &worker{Plane: &Plane{options: Options{SpareCPU: helps}}}
		w.noteRead(7)
		if got := w.signs.Load(); got != want {
			t.Errorf("helps: %t: %d signs, want %d", helps, got, want)
		}
	}
}
