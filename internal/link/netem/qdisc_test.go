package netem

import (
	"encoding/binary"
	"math"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink/nl"

	"skerry/internal/link"
)

// sent is what netem is told, decoded.
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
	none := sent{Limit: unboundedQueue, Rate: boundless, Overhead: -14}
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
		{"bandwidth", link.Quality{Bandwidth: 8_000_000, Queue: 15_000}, func(s *sent) {
			s.Rate, s.Limit = 1_000_000, 10
		}},
		{"bandwidth and latency", link.Quality{Bandwidth: 12_000_000, Queue: 15_000, Latency: 10 * time.Millisecond}, func(s *sent) {
			s.Rate, s.Limit, s.Latency = 1_500_000, 20, 10*time.Millisecond
		}},
		{"bandwidth over 32 bits", link.Quality{Bandwidth: 100_000_000_000, Queue: 1_500}, func(s *sent) {
			s.Rate, s.Limit = 12_500_000_000, 1
		}},
		{"tiny bandwidth", link.Quality{Bandwidth: 1, Queue: 1}, func(s *sent) { s.Rate, s.Limit = 1, 1 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := none
			tt.want(&want)
			got := decode(t, tables{}.options(tt.quality, 1500, 1).Serialize())
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("what netem is told (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOptionsAreComplete: an attribute that a change leaves out keeps its old value.
func TestOptionsAreComplete(t *testing.T) {
	attrs, err := nl.ParseRouteAttr(tables{}.options(link.Quality{}, 1500, 1).Serialize()[syscall.SizeofRtAttr+qoptSize:])
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

func TestAlone(t *testing.T) {
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
		if got := alone(tt.quality); got != tt.want {
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

func TestCountersFollowReadings(t *testing.T) {
	d := direction{last: reading{bytes: 1000, packets: math.MaxUint32 - 1, drops: math.MaxUint32}}
	d.add(reading{bytes: 1000 + 4*114, packets: 2, drops: 4}) // both wrapped around
	d.quality = link.Quality{Down: true}
	d.add(reading{bytes: 1000 + 4*114, packets: 2, drops: 7})
	want := link.Counters{Bytes: 400, Packets: 4, DroppedQueue: 5, DroppedLoss: 3}
	if diff := cmp.Diff(want, d.counters); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
}
