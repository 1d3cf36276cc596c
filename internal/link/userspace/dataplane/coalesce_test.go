package dataplane

import "testing"

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
