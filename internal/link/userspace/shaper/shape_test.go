package shaper

import (
	"math"
	"testing"
	"time"

	"skerry/internal/link"
	"skerry/internal/link/userspace/packet"
)

// single is a packet with a number of layer-3 bytes.
func single(t testing.TB, size int) *packet.Packet {
	t.Helper()
	k := packet.NewPool(1 << 20).Get(size + packet.VnetHeader)
	k.Buffer()[packet.VnetHeader] = 0x45
	if !k.Parse(size+packet.VnetHeader, 0) {
		t.Fatal("packet does not parse")
	}
	return k
}

func direction(q link.Quality) *Shaper { return New(Compile(q), "a~b", "ab", 1) }

const ms = int64(time.Millisecond)

// dues offers packets of 1000 bytes at given times and returns their due times.
func dues(t testing.TB, s *Shaper, at ...int64) []int64 {
	t.Helper()
	for _, now := range at {
		if v := s.Offer(now, 0, single(t, 1000), 0, false); v != Queued {
			t.Fatalf("packet offered at %d: verdict %d", now, v)
		}
	}
	return drain(s)
}

// drain removes every packet at its due time and returns the due times.
func drain(s *Shaper) (dues []int64) {
	for due, _, ok := s.NextDue(0); ok; due, _, ok = s.NextDue(due) {
		if next := s.Next(due); next.Packet != nil {
			dues = append(dues, next.Due)
		}
	}
	return dues
}

func TestLatency(t *testing.T) {
	s := direction(link.Quality{Latency: 10 * time.Millisecond})
	got := dues(t, s, 0, 1, 5*ms)
	for i, want := range []int64{10 * ms, 10*ms + 1, 15 * ms} {
		if got[i] != want {
			t.Errorf("packet %d is due at %d, want %d", i, got[i], want)
		}
	}
}

func TestPerfectLinkSendsAtOnce(t *testing.T) {
	s := direction(link.Quality{})
	if v := s.Offer(5, 0, single(t, 1000), 0, false); v != Send {
		t.Errorf("verdict %d, want Send", v)
	}
}

func TestBandwidthIsExact(t *testing.T) {
	// 937 Mbit/s and 61 bytes: neither divides the other.
	const rate, size, packets = 937_000_000, 61, 100_000
	s := direction(link.Quality{Bandwidth: rate, Queue: 1 << 40})
	k := single(t, size)
	for range packets {
		s.Offer(0, 0, k, 0, false)
	}
	drain(s)
	last := s.last
	want := float64(packets) * size * 8 / rate * 1e9
	if math.Abs(float64(last)-want) > 1 {
		t.Errorf("%d packets take %d ns, want %.1f", packets, last, want)
	}
}

func TestQueueDropsAtTheTail(t *testing.T) {
	s := direction(link.Quality{Bandwidth: 8_000_000, Queue: 3000}) // 1 ms for 1000 bytes
	var verdicts []Verdict
	for range 5 {
		verdicts = append(verdicts, s.Offer(0, 0, single(t, 1000), 0, false))
	}
	for i, want := range []Verdict{Queued, Queued, Queued, Full, Full} {
		if verdicts[i] != want {
			t.Errorf("packet %d: verdict %d, want %d", i, verdicts[i], want)
		}
	}
	if v := s.Offer(ms, 0, single(t, 1000), 0, false); v != Queued {
		t.Error("the queue is full after the first packet has left")
	}
	if v := direction(link.Quality{Bandwidth: 1, Queue: 1}).Offer(0, 0, single(t, 1000), 0, false); v != Queued {
		t.Error("an idle link drops a packet larger than its queue")
	}
}

func TestLatencyDoesNotFillTheQueue(t *testing.T) {
	s := direction(link.Quality{Latency: time.Second, Bandwidth: 8_000_000, Queue: 2000})
	for i := range int64(500) {
		if v := s.Offer(i*ms, 0, single(t, 1000), 0, false); v != Queued {
			t.Fatalf("packet %d: verdict %d", i, v)
		}
	}
}

func TestSetKeepsTimesAndOrder(t *testing.T) {
	s := direction(link.Quality{Latency: 100 * time.Millisecond})
	s.Offer(0, 0, single(t, 1000), 0, false)
	s.Set(0, Compile(link.Quality{Latency: 10 * time.Millisecond}))
	got := dues(t, s, 1, 95*ms)
	for i, want := range []int64{100 * ms, 100 * ms, 105 * ms} {
		if got[i] != want {
			t.Errorf("packet %d is due at %d, want %d", i, got[i], want)
		}
	}
}

func TestFasterBandwidthDoesNotOverstateTheQueue(t *testing.T) {
	s := direction(link.Quality{Bandwidth: 8_000, Queue: 5000}) // 1 s for 1000 bytes
	for range 4 {
		s.Offer(0, 0, single(t, 1000), 0, false)
	}
	s.Set(0, Compile(link.Quality{Bandwidth: 1e9, Queue: 6000}))
	if v := s.Offer(1, 0, single(t, 1000), 0, false); v != Queued {
		t.Error("a higher bandwidth changed the size of 4000 queued bytes")
	}
}

func TestReorderedPacketOvertakes(t *testing.T) {
	s := direction(link.Quality{Latency: time.Second})
	s.Offer(0, 0, single(t, 1000), 0, false)
	if v := s.Offer(1, 0, single(t, 1000), Reordered, false); v != Send {
		t.Errorf("verdict %d, want Send", v)
	}
}

func TestFates(t *testing.T) {
	const n = 200_000
	tests := []struct {
		name string
		q    link.Quality
		fate Fate
		want float64
	}{
		{"loss", link.Quality{Loss: 0.1}, Lost, 0.1},
		{"certain loss", link.Quality{Loss: 1}, Lost, 1},
		{"duplicate", link.Quality{Duplicate: 0.3}, Duplicated, 0.3},
		{"corrupt", link.Quality{Corrupt: 0.02}, Corrupted, 0.02},
		{"reorder", link.Quality{Reorder: 0.25}, Reordered, 0.25},
		// Share of the bad state: P/(P+R) = 1/5; loss there 0.5, else 0.
		{"burst", link.Quality{Burst: &link.GilbertElliott{P: 0.01, R: 0.04, H: 0.5, K: 1}}, Lost, 0.1},
		{"loss after duplicate", link.Quality{Duplicate: 1, Loss: 0.5}, Duplicated, 0.5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, hits := direction(tt.q), 0
			for range n {
				if s.Fate()&tt.fate != 0 {
					hits++
				}
			}
			if got := float64(hits) / n; math.Abs(got-tt.want) > 0.015 {
				t.Errorf("share %.4f, want %.4f", got, tt.want)
			}
		})
	}
}

func TestBurstLength(t *testing.T) {
	s := direction(link.Quality{Burst: &link.GilbertElliott{P: 0.01, R: 0.2, H: 0, K: 1}})
	bursts, lost, before := 0, 0, false
	for range 500_000 {
		now := s.Fate()&Lost != 0
		if now {
			lost++
			if !before {
				bursts++
			}
		}
		before = now
	}
	if got := float64(lost) / float64(bursts); math.Abs(got-5) > 0.3 { // 1/R
		t.Errorf("bursts of %.2f packets, want 5", got)
	}
}

func TestSeedDecidesFates(t *testing.T) {
	q := Compile(link.Quality{Loss: 0.5})
	fates := func(s *Shaper) (bits uint64) {
		for range 64 {
			bits = bits<<1 | uint64(s.Fate()&Lost)
		}
		return bits
	}
	first := fates(New(q, "a~b", "ab", 7))
	if again := fates(New(q, "a~b", "ab", 7)); again != first {
		t.Error("the same seed gives different outcomes")
	}
	for _, other := range []*Shaper{New(q, "a~b", "ba", 7), New(q, "a~c", "ab", 7), New(q, "a~b", "ab", 8)} {
		if fates(other) == first {
			t.Error("another direction, link or seed gives the same outcomes")
		}
	}
}

// At any packet rate, delays have the mean and the deviation of the quality, and no packet overtakes another. All rates
// cover the same time and therefore the same number of independent values: 10,000.
func TestJitterDoesNotDependOnTheRateOfPackets(t *testing.T) {
	const jitter, latency, periods = 5 * time.Millisecond, 50 * time.Millisecond, 20_000
	for _, d := range []link.Distribution{link.Normal, link.Uniform, link.Pareto, link.ParetoNormal} {
		for _, perSecond := range []int64{1, 10, 100, 1000, 10_000} {
			s := direction(link.Quality{Latency: latency, Jitter: jitter, Distribution: d})
			k := single(t, 100)
			step := int64(time.Second) / perSecond
			n := max(periods, int(periods*s.period/step))
			var sum, squares float64
			var last int64
			for i := range int64(n) {
				now := i * step
				s.Offer(now, 0, k, 0, false)
				due := s.last
				for head, _, _ := s.NextDue(now); s.Len() > 0 && head <= now; head, _, _ = s.NextDue(now) {
					s.Next(now)
				}
				if due < last {
					t.Fatalf("%s, %d/s: packet %d is due %d ns before the one before it", d, perSecond, i, last-due)
				}
				last = due
				x := float64(due-now) / float64(ms)
				sum, squares = sum+x, squares+x*x
			}
			mean := sum / float64(n)
			deviation := math.Sqrt(squares/float64(n) - mean*mean)
			want := 5.0
			if d == link.Uniform {
				want = 5 / math.Sqrt(3)
			}
			t.Logf("%s, %d packets/s: mean %.3f ms, standard deviation %.3f ms", d, perSecond, mean, deviation)
			if math.Abs(mean-50) > 0.15 || math.Abs(deviation-want) > 0.2 {
				t.Errorf("%s, %d packets/s: mean %.3f ms, standard deviation %.3f ms; want 50 and %.3f", d, perSecond, mean, deviation, want)
			}
		}
	}
}

func TestJitterIsIndependentAfterTwoPeriods(t *testing.T) {
	const n = 50_000
	noise := noise{seed: 1}
	var product float64
	for i := range int64(n) {
		product += noise.at(i*400, 100) * noise.at(i*400+200, 100)
	}
	if correlation := product / n; math.Abs(correlation) > 0.02 {
		t.Errorf("values two periods apart have a correlation of %.3f", correlation)
	}
}

// The queue drains at the current rate, not at the rate at which packets were queued.
func TestQueueDrainsAtTheNewRate(t *testing.T) {
	fill := func(rate int64) *Shaper {
		s := direction(link.Quality{Latency: 2 * time.Millisecond, Bandwidth: rate, Queue: 1 << 20})
		for range 200 {
			s.Offer(0, 0, single(t, 1000), 0, false)
		}
		return s
	}
	slow := link.Quality{Latency: 2 * time.Millisecond, Bandwidth: 100_000, Queue: 1 << 20}
	fast := slow
	fast.Bandwidth = 10_000_000
	unlimited := slow
	unlimited.Bandwidth = 0

	// 0.3 s at 100 kbit/s transmit 3.75 packets; the other 196.25 take 0.8 ms each.
	s := fill(100_000)
	s.Set(300*ms, Compile(fast))
	if dues := drain(s); dues[199] != 300*ms+157*ms+2*ms {
		t.Errorf("after a rise of the rate, the last packet is due at %v", time.Duration(dues[199]))
	}
	// 40 ms at 10 Mbit/s transmit 50 packets, the other 150 take 80 ms each.
	s = fill(10_000_000)
	s.Set(40*ms, Compile(slow))
	if dues := drain(s); dues[199] != 40*ms+12_000*ms+2*ms {
		t.Errorf("after a fall of the rate, the last packet is due at %v", time.Duration(dues[199]))
	}
	s = fill(100_000)
	s.Set(300*ms, Compile(unlimited))
	if dues := drain(s); dues[199] != 302*ms {
		t.Errorf("without a limit, the last packet is due at %v", time.Duration(dues[199]))
	}
}

func TestGrain(t *testing.T) {
	tests := []struct {
		q    link.Quality
		want int
	}{
		{link.Quality{}, math.MaxInt},
		{link.Quality{Bandwidth: 1e6}, 1},
		{link.Quality{Bandwidth: 1e9}, 16},
		{link.Quality{Bandwidth: 1e9, Queue: 60_000}, 5},
		{link.Quality{Bandwidth: 1e9, Queue: 1}, 1},
	}
	for _, tt := range tests {
		if got := Compile(tt.q).Grain(1500); got != tt.want {
			t.Errorf("%+v: %d packets, want %d", tt.q, got, tt.want)
		}
	}
}

// An overtaking packet occupies the wire, and later packets wait for it.
func TestOvertakingPacketOccupiesTheWire(t *testing.T) {
	s := direction(link.Quality{Bandwidth: 8_000_000, Queue: 1 << 20}) // 1 ms for 1000 bytes
	if v := s.Offer(0, 0, single(t, 1000), Reordered, false); v != Send {
		t.Fatalf("verdict %d, want Send", v)
	}
	if v := s.Offer(0, 0, single(t, 1000), 0, false); v != Queued {
		t.Fatalf("verdict %d, want Queued", v)
	}
	if dues := drain(s); len(dues) != 1 || dues[0] != 2*ms {
		t.Errorf("due at %v, want one packet at 2 ms", dues)
	}
}

// FuzzOffer drives a direction through random settings and times. Packets must leave in order, and the byte count of
// the queue must be correct.
func FuzzOffer(f *testing.F) {
	f.Add([]byte{1, 2, 3, 250, 5, 6, 7, 8, 9})
	f.Fuzz(func(t *testing.T, script []byte) {
		s := direction(link.Quality{})
		var now, lastDue int64
		k := single(t, 700)
		for _, b := range script {
			switch x := int64(b >> 2); b & 3 {
			case 0:
				now += x * x * 10_000
			case 1:
				s.Set(now, Compile(link.Quality{
					Latency: time.Duration(x) * time.Millisecond, Jitter: time.Duration(x%3) * time.Millisecond,
					Bandwidth: x % 7 * 100_000, Queue: 1 + x*100,
				}))
			case 2:
				s.Offer(now, 0, k, Fate(x%2)*Reordered, false)
			case 3:
				if due, _, ok := s.NextDue(now); ok && due <= now {
					if next := s.Next(now); next.Due != due || due < lastDue {
						t.Fatalf("due %d after %d, announced as %d", next.Due, lastDue, due)
					}
					lastDue = due
				}
			}
			var bytes int64
			for i := s.wire.first; i < s.wire.added; i++ {
				bytes += s.wire.at(i).size
			}
			if bytes != s.wire.bytes || s.wire.len() > 0 && s.departs < s.freeAt {
				t.Fatalf("%d bytes are queued, but the queue reports %d", bytes, s.wire.bytes)
			}
		}
	})
}
