package linktest

import (
	"testing"
	"time"

	"skerry/internal/link"
	"skerry/internal/link/probe"
)

// counters compares the counters with known UDP traffic, to the byte.
func (s *suite) counters(t *testing.T) {
	w := s.wire(t, link.Quality{Latency: time.Millisecond}, perfect)
	type tally struct{ packets, bytes uint64 }
	var ab, ba tally
	for _, step := range []struct {
		packets, bytes int
		back           bool
	}{
		{100, 100, false}, {50, 1500, false}, {30, 333, true}, {1, probe.MinPacketBytes, true},
	} {
		from, to, sum := w.near, w.far, &ab
		if step.back {
			from, to, sum = w.far, w.near, &ba
		}
		train := s.flood(step.packets)
		train.Bytes = step.bytes
		checkComplete(t, w.sendTo(from, to, train), step.packets)
		sum.packets += uint64(step.packets)
		sum.bytes += uint64(step.packets * step.bytes)
	}
	counted := func(c link.Counters, want tally) bool {
		return c.Packets == want.packets && c.Bytes == want.bytes && c.DroppedLoss+c.DroppedQueue == 0
	}
	st := w.statsWhen("what was sent, at layer 3", func(st link.Stats) bool {
		return counted(st.AB, ab) && counted(st.BA, ba)
	})
	if t.Failed() {
		t.Logf("sent %+v and %+v", ab, ba)
	}
	for _, late := range []link.Lateness{st.AB.Late, st.BA.Late} {
		if !late.Known && late != (link.Lateness{}) {
			t.Errorf("lateness that is not known is given: %+v", late)
		}
		if late.Known && !(0 <= late.P50 && late.P50 <= late.P99 && late.P99 <= late.Max) {
			t.Errorf("lateness is out of order: %+v", late)
		}
	}
	before := w.stats()
	w.set(&link.Quality{Latency: 2 * time.Millisecond}, &link.Quality{Loss: 0.5})
	if after := w.stats(); after.AB.Packets != before.AB.Packets || after.BA.Bytes != before.BA.Bytes {
		t.Errorf("Set changed the counters from %+v to %+v", before, after)
	}
}

// countersOfTCP checks that a super-packet counts as its packets.
func (s *suite) countersOfTCP(t *testing.T) {
	const size, mtu = 4 << 20, 1500
	w := s.wire(t, perfect, perfect)
	w.transfer(size, nil)
	ab := w.statsWhen("the whole transfer", func(st link.Stats) bool { return st.AB.Bytes >= size }).AB
	least := uint64(size/mtu + 1)
	if ab.Packets < least || ab.Bytes > ab.Packets*mtu {
		t.Errorf("%d bytes in %d packets, want at least %d packets of at most %d bytes", ab.Bytes, ab.Packets, least, mtu)
	}
	if most := uint64(size + size/10); ab.Bytes > most {
		t.Errorf("%d bytes counted for a transfer of %d, want at most %d", ab.Bytes, size, most)
	}
}
