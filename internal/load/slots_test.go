package load

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWriteSlots(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	var s writeSlots
	for _, at := range []int{7003, 7019, 7991, 8640} {
		s.add(ms(at))
	}
	got := s.since(ms(7001), ms(8001), nil)
	// Slots since 7.00 s: 0, 1 and 99; 8.64 s is beyond the end.
	if diff := cmp.Diff([]uint64{1 | 1<<1, 1 << (99 - 64)}, got); diff != "" {
		t.Error(diff)
	}
	if s != (writeSlots{}) {
		t.Error("what was taken is still there")
	}
	s.add(ms(5115)) // around the end of the ring
	s.add(ms(5125))
	got = s.since(ms(5110), ms(5130), []uint64{0})
	if diff := cmp.Diff([]uint64{1 | 1<<1}, got); diff != "" {
		t.Error(diff)
	}
}
