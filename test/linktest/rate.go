package linktest

import (
	"fmt"
	"testing"
	"time"

	"skerry/internal/link"
	"skerry/internal/link/probe"
	"skerry/test/testkit"
)

// bandwidth sends trains into a queue that holds them whole. Small packets reveal a link that counts other headers
// than IP's.
func (s *suite) bandwidth(t *testing.T) {
	const size, mtu = 500, 1500
	slower := int64(s.pace * s.pace) // a slow machine must still send faster than the link
	ab, ba := 20_000_000/slower, 2_000_000/slower
	duration := s.pace * 400 * time.Millisecond
	packets := func(bps int64) int { return int(duration.Seconds() * float64(bps) / 8 / size) }
	quality := func(bps int64) *link.Quality {
		return &link.Quality{Bandwidth: bps, Latency: 10 * time.Millisecond, Queue: int64(packets(bps) * mtu)}
	}
	w := s.wire(t, *quality(ab), *quality(ba))
	check := func(t *testing.T, from, to *end, want int64) {
		t.Helper()
		s.checkRate(t, "from "+from.addr, want, func() (bps int64) {
			train := probe.Train{Packets: packets(want), Bytes: size, Quiet: time.Second}
			bps = probe.AnalyzeTrain(w.sendTo(from, to, train), size).BPS
			return bps
		})
	}
	check(t, w.near, w.far, ab)
	check(t, w.far, w.near, ba)
	for _, next := range []int64{1_000_000 / slower, 50_000_000 / slower} {
		t.Run(fmt.Sprintf("set to %d", next), func(t *testing.T) {
			w.set(quality(next), nil)
			check(t, w.near, w.far, next)
			check(t, w.far, w.near, ba)
		})
	}
}

// checkRate measures until a rate is right. It skips the test on a machine that is never quiet.
func (s *suite) checkRate(t *testing.T, what string, want int64, measure func() (bps int64)) {
	t.Helper()
	switch found, tries := judgeTries(s.Rate, func() (off float64, gone float64) {
		var bps int64
		began := time.Now()
		held := measureAway(func() { bps = measure() })
		return float64(bps)/float64(want) - 1, held.Seconds() / time.Since(began).Seconds()
	}); found {
	case wrong:
		t.Errorf("%s: want %d bit/s within %.1f %%, and the load of the machine does not explain the error: %s", what, want, s.Rate*100, tries)
	case noisy:
		testkit.Lacks(t, testkit.Quiet, fmt.Errorf(
			"the machine was never quiet for as long as a rate is measured: %s: %d bit/s were wanted within %.1f %%: %s",
			what, want, s.Rate*100, tries))
	}
}

// queue sends more than the queue holds. Packets have full size, so that bounds in bytes and in packets are equal.
func (s *suite) queue(t *testing.T) {
	const size, room, bps = 1500, 40, 4_000_000 // 3 ms per packet
	w := s.wire(t, link.Quality{Bandwidth: bps, Queue: room * size}, perfect)
	train := probe.Train{Packets: 200, Bytes: size, Quiet: s.pace * time.Second}
	arrivals := w.send(train)
	checkOrder(t, arrivals)
	// The link transmitted packets during the sending. The last one may have been delayed before the queue.
	carried := int64(0)
	if n := len(arrivals); n > 0 {
		sending := s.Slack + time.Duration(arrivals[n-1].Sent-arrivals[0].Sent)
		carried = int64(sending.Seconds()*bps/8/size) + 2
	}
	if got := int64(len(arrivals)); got < room-1 || got > room+carried {
		t.Errorf("%d packets passed a queue for %d, want at most %d more", got, room, carried)
	}
	w.statsWhen("the rest dropped at the queue", func(st link.Stats) bool {
		return st.AB.Packets == uint64(len(arrivals)) && st.AB.DroppedLoss == 0 &&
			st.AB.DroppedQueue == uint64(train.Packets-len(arrivals))
	})
	t.Run("with loss", func(t *testing.T) {
		w.set(&link.Quality{Bandwidth: bps, Queue: room * size, Loss: 0.1}, nil)
		before := w.stats().AB
		arrived := uint64(len(w.send(train)))
		st := w.statsWhen("every packet accounted for", func(st link.Stats) bool {
			all := st.AB.Packets + st.AB.DroppedLoss + st.AB.DroppedQueue
			return st.AB.Packets == before.Packets+arrived && all == 2*uint64(train.Packets)
		}).AB
		checkBinomial(t, "lost", int(st.DroppedLoss-before.DroppedLoss), train.Packets, 0.1)
	})
	t.Run("default", func(t *testing.T) {
		w.set(&link.Quality{Bandwidth: 50_000_000}, nil)
		burst := probe.Train{Packets: int(link.DefaultQueue(50_000_000, 0) / size), Bytes: size, Quiet: s.pace * time.Second}
		checkComplete(t, w.send(burst), burst.Packets)
	})
}

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
			t.Errorf("unknown lateness has a value: %+v", late)
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
