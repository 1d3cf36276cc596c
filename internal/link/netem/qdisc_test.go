package netem

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink/nl"
	"gonum.org/v1/gonum/stat"

	"skerry/internal/link"
)

// sent is a decoded request to netem.
type sent struct {
	Latency, Jitter time.Duration
	Limit, Gap      uint32
	Loss, Duplicate float64
	Reorder         float64
	Corrupt         float64
	Burst           *link.GilbertElliott // K as netem has it: loss in the good state
	Rate            uint64
	Overhead        int32
	Table           int // entries
}

const qoptSize = 24

func decode(t *testing.T, message []byte) sent {
	t.Helper()
	body := message[syscall.SizeofRtAttr:]
	word := func(b []byte, i int) uint32 { return binary.NativeEndian.Uint32(b[4*i:]) }
	probability := func(w uint32) float64 { return math.Round(float64(w)/math.MaxUint32*1e9) / 1e9 }
	s := sent{Limit: word(body, 1), Loss: probability(word(body, 2)), Gap: word(body, 3), Duplicate: probability(word(body, 4))}
	attrs, err := nl.ParseRouteAttr(body[qoptSize:])
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range attrs {
		v := a.Value
		switch a.Attr.Type {
		case attrLatency64:
			s.Latency = time.Duration(binary.NativeEndian.Uint64(v))
		case attrJitter64:
			s.Jitter = time.Duration(binary.NativeEndian.Uint64(v))
		case attrDelayTable:
			s.Table = len(v) / 2
		case attrReorder:
			s.Reorder = probability(word(v, 0))
		case attrCorrupt:
			s.Corrupt = probability(word(v, 0))
		case attrRate:
			s.Overhead = int32(word(v, 1))
		case attrRate64:
			s.Rate = binary.NativeEndian.Uint64(v)
		case attrLoss:
			nested, err := nl.ParseRouteAttr(v)
			if err != nil || len(nested) != 1 || nested[0].Attr.Type != lossGilbertElliott {
				t.Fatalf("loss model %v, %v: want one Gilbert-Elliott", nested, err)
			}
			m := nested[0].Value
			s.Burst = &link.GilbertElliott{P: probability(word(m, 0)), R: probability(word(m, 1)),
				H: probability(word(m, 2)), K: probability(word(m, 3))}
		}
	}
	return s
}

func TestOptions(t *testing.T) {
	none := sent{Limit: inFlight, Rate: boundless}
	tests := []struct {
		name    string
		quality link.Quality
		want    func(*sent)
	}{
		{"perfect", link.Quality{}, func(*sent) {}},
		{"latency", link.Quality{Latency: 20 * time.Millisecond}, func(s *sent) { s.Latency = 20 * time.Millisecond }},
		{"jitter", link.Quality{Jitter: time.Millisecond, Distribution: link.Uniform}, func(s *sent) {
			s.Jitter, s.Table = time.Millisecond, tableSize
		}},
		{"events", link.Quality{Loss: 0.25, Duplicate: 0.5, Corrupt: 1}, func(s *sent) {
			s.Loss, s.Duplicate, s.Corrupt = 0.25, 0.5, 1
		}},
		{"reorder", link.Quality{Reorder: 0.125}, func(s *sent) { s.Reorder, s.Gap = 0.125, 1 }},
		{"burst", link.Quality{Burst: &link.GilbertElliott{P: 0.1, R: 0.2, H: 0.3, K: 0.9}}, func(s *sent) {
			s.Burst = &link.GilbertElliott{P: 0.1, R: 0.2, H: 0.3, K: 0.1}
		}},
		{"burst beside loss", link.Quality{Loss: 0.5, Burst: &link.GilbertElliott{P: 0.1, R: 0.2, H: 0.4, K: 1}}, func(s *sent) {
			s.Burst = &link.GilbertElliott{P: 0.1, R: 0.2, H: 0.2, K: 0.5}
		}},
		{"down beside burst", link.Quality{Down: true, Burst: &link.GilbertElliott{P: 1}}, func(s *sent) { s.Loss = 1 }},
		{"bandwidth", link.Quality{Bandwidth: 8_000_000, Queue: 15_000}, func(*sent) {}}, // set on hfsc instead
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := none
			tt.want(&want)
			got := decode(t, tables{}.options(tt.quality, 1).Serialize())
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("request to netem (-want +got):\n%s", diff)
			}
		})
	}
}

// A change must contain all attributes, because omitted ones keep their old value.
func TestOptionsAreComplete(t *testing.T) {
	attrs, err := nl.ParseRouteAttr(tables{}.options(link.Quality{}, 1).Serialize()[syscall.SizeofRtAttr+qoptSize:])
	if err != nil {
		t.Fatal(err)
	}
	var got []uint16
	for _, a := range attrs {
		got = append(got, a.Attr.Type)
	}
	want := []uint16{attrLatency64, attrJitter64, attrCorrelation, attrReorder, attrCorrupt, attrRate, attrRate64, attrSeed}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attributes of a perfect link (-want +got):\n%s", diff)
	}
}

func TestDelayTable(t *testing.T) {
	for _, d := range []link.Distribution{link.Uniform, link.Normal, link.Pareto, link.ParetoNormal} {
		table := delayTable(d)
		if len(table) != 2*tableSize {
			t.Fatalf("%s: %d bytes, want %d", d, len(table), 2*tableSize)
		}
		last := int16(math.MinInt16)
		for i := 0; i < len(table); i += 2 {
			x := int16(binary.NativeEndian.Uint16(table[i:]))
			if x < last {
				t.Fatalf("%s: entry %d is %d after %d: the tail wrapped around", d, i/2, x, last)
			}
			last = x
		}
	}
}

// Computes the distribution of a jitter of 5 ms by netem's rule. docs/link-accuracy.md has the figures.
func TestJitterByPacket(t *testing.T) {
	table := delayTable(link.Normal)
	random := rand.New(rand.NewPCG(1, 2))
	for _, tt := range []struct {
		rate            int // packets/s
		mean, deviation float64
	}{{1, 50, 5}, {10, 50, 5}, {100, 50.3, 4.7}, {1_000, 54.5, 3.2}, {10_000, 59.3, 2.3}} {
		var delays []float64
		last := 0.0
		for i := range max(20_000, 60*tt.rate) {
			drawn := int16(binary.NativeEndian.Uint16(table[2*random.IntN(tableSize):]))
			sent := float64(i) * 1000 / float64(tt.rate)
			last = max(last, sent+50+5*float64(drawn)/tableScale) // due; no packet overtakes another
			delays = append(delays, last-sent)
		}
		mean, deviation := stat.MeanStdDev(delays, nil)
		t.Logf("%6d packets/s: mean %.2f ms, deviation %.2f ms", tt.rate, mean, deviation)
		if math.Abs(mean-tt.mean) > 0.2 || math.Abs(deviation-tt.deviation) > 0.2 {
			t.Errorf("%d packets/s: mean %.2f ms, deviation %.2f ms: want %.1f and %.1f", tt.rate, mean, deviation, tt.mean, tt.deviation)
		}
	}
}

func TestDrawsEach(t *testing.T) {
	tests := []struct {
		name    string
		quality link.Quality
		want    bool
	}{
		{"perfect", link.Quality{}, false},
		{"delayed", link.Quality{Latency: time.Second, Jitter: time.Second}, false},
		{"loss", link.Quality{Loss: 0.1}, true},
		{"burst", link.Quality{Burst: &link.GilbertElliott{}}, true},
		{"duplicate", link.Quality{Duplicate: 0.1}, true},
		{"reorder", link.Quality{Reorder: 0.1}, true},
		{"corrupt", link.Quality{Corrupt: 0.1}, true},
		{"limited", link.Quality{Bandwidth: 1_000_000_000}, true},
		{"barely limited", link.Quality{Bandwidth: 10_000_000_000}, false},
	}
	for _, tt := range tests {
		if got := drawsEach(tt.quality); got != tt.want {
			t.Errorf("%s: packets travel alone: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestCPUMask(t *testing.T) {
	for cpu, want := range map[int]string{0: "1", 5: "20", 31: "80000000", 32: "1,00000000", 67: "8,00000000,00000000"} {
		if got := cpuMask(cpu); got != want {
			t.Errorf("cpuMask(%d) = %q, want %q", cpu, got, want)
		}
	}
}

func TestShape(t *testing.T) {
	for _, tt := range []struct {
		name    string
		quality link.Quality
		want    shape
	}{
		{"perfect", link.Quality{}, shape{rate: unlimited, queue: unlimited}},
		{"bandwidth", link.Quality{Bandwidth: 8_000_000, Queue: 15_000}, shape{rate: 1_000_000, queue: 15_000, layer3: true}},
		{"queue by default", link.Quality{Bandwidth: 8_000}, shape{rate: 1_000, queue: 128 << 10, layer3: true}},
		{"no room for a packet", link.Quality{Bandwidth: 1, Queue: 1}, shape{rate: 1, queue: 1500, layer3: true}},
		{"no room for a super-packet", link.Quality{Bandwidth: 8_000_000_000, Queue: 1}, shape{rate: 1_000_000_000, queue: superPacket}},
		{"loss", link.Quality{Bandwidth: 8_000_000_000, Queue: 1 << 20, Loss: 0.1}, shape{rate: 1_000_000_000, queue: 1 << 20, layer3: true}},
		{"over 32 bits", link.Quality{Bandwidth: 100_000_000_000, Queue: 1 << 40}, shape{rate: unlimited, queue: unlimited}},
	} {
		if got := newShape(tt.quality, 1500); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestCountersFollowReadings(t *testing.T) {
	d := direction{device: &device{mtu: 1500}, last: reading{bytes: 1000, packets: math.MaxUint32 - 1, drops: math.MaxUint32}}
	d.add(reading{bytes: 1000 + 4*114, packets: 2, drops: 4, queue: 5}) // packets and drops wrapped around
	d.quality = link.Quality{Bandwidth: 1_000_000, Loss: 0.1}           // counts no Ethernet headers
	d.add(reading{bytes: 1000 + 4*114 + 100, packets: 3, drops: 10, queue: 8, waiting: 700})
	d.add(reading{bytes: 1000 + 4*114 + 100, packets: 3, drops: 10, queue: 8, waiting: 200})
	want := link.Counters{Bytes: 500, Packets: 5, DroppedQueue: 8, DroppedLoss: 3, Account: link.Account{Waiting: 200}}
	if diff := cmp.Diff(want, d.counters); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
}
