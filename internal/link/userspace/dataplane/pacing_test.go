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
		t.Error("a moderate flow is held up")
	}
	carry(100, flowSpan/32) // 16 Gbit/s
	if !f.shouldPause() {
		t.Error("a heavy flow is not noticed")
	}
	f.gap = true
	if f.shouldPause() {
		t.Error("the thread pauses though nothing came during the last pause")
	}
	carry(1, flowSpan/32)
	if !f.shouldPause() {
		t.Error("the flow that goes on is not noticed")
	}
	carry(2, 10*flowSpan)
	if f.shouldPause() {
		t.Error("a flow that has ended is still taken for heavy")
	}
}

// A plane that is busy for its whole permitted time uses at most 95 % of each second.
func TestRestStaysBelowKernelLimit(t *testing.T) {
	const second = int64(time.Second)
	const step = int64(100 * time.Microsecond)
	var r rest
	var rests []int64 // begins and ends, in turn
	r.begin(0)
	now := 3 * second // idle: no more credit than a burst comes of it
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
			t.Fatalf("busy for %v of the second from %v on", time.Duration(busy), time.Duration(from))
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
