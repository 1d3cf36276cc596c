package probe

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"skerry/internal/testkit"
)

// pairOf returns two namespaces joined by a plain veth pair.
func pairOf(t *testing.T) (a, b *testkit.NS) {
	t.Helper()
	testkit.Need(t, testkit.Root)
	a, b = testkit.Namespace(t), testkit.Namespace(t)
	testkit.VethPair(t, a, b)
	return a, b
}

// place is an Inside with an address of its choice.
type place struct {
	*testkit.NS
	addr string
}

func (p *place) Addr() string { return p.addr }

func TestRTT(t *testing.T) {
	a, b := pairOf(t)
	got, err := RTT(t.Context(), []Pair{{a, b}, {b, a}, {a, a}}, 10, 5*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range got {
		if r.Sent != 10 || r.Lost != 0 || len(r.Samples) != 10 || r.Err != nil {
			t.Errorf("pair %d: sent %d, lost %d, %d samples, error %v; want 10, 0, 10, none",
				i, r.Sent, r.Lost, len(r.Samples), r.Err)
		}
		if r.Min <= 0 || r.Median < r.Min || r.P99 < r.Median || r.Max < r.P99 {
			t.Errorf("pair %d: min %v, median %v, p99 %v, max %v are out of order", i, r.Min, r.Median, r.P99, r.Max)
		}
	}
}

func TestRTTCountsLoss(t *testing.T) {
	a, b := pairOf(t)
	b.Assign(t, "vb", "10.255.1.2/24") // an address that nothing at a leads to
	tests := []struct{ name, to string }{
		{"broadcast refused", "10.255.0.3"},
		{"no route", "10.255.1.2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := RTT(t.Context(), []Pair{{a, &place{b, tt.to}}}, 3, time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			if r := got[0]; r.Sent != 3 || r.Lost != 3 || r.Loss() != 1 || r.Err == nil {
				t.Errorf("sent %d, lost %d, error %v; want all of 3 lost and a sending error", r.Sent, r.Lost, r.Err)
			}
		})
	}
}

func TestRTTStops(t *testing.T) {
	a, b := pairOf(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := RTT(ctx, []Pair{{a, b}}, 1000, time.Second); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("RTT under a deadline = %v, want DeadlineExceeded", err)
	}
	if _, err := RTT(t.Context(), []Pair{{a, &place{b, "nowhere"}}}, 1, time.Second); err == nil {
		t.Error("RTT to a name that is no address succeeded")
	}
}

func TestSend(t *testing.T) {
	a, b := pairOf(t)
	got, err := Send(t.Context(), a, b, Train{Packets: 100, Bytes: 200, Every: 100 * time.Microsecond, Burst: 10})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 100 {
		t.Fatalf("%d of 100 packets arrived", len(got))
	}
	for i, a := range got {
		if a.Seq != i || a.Place != i || a.Delay() < 0 {
			t.Errorf("arrival %d is %+v: out of order or before its time", i, a)
		}
	}
	if _, err := Send(t.Context(), a, b, Train{Packets: 1, Bytes: LeastBytes - 1}); err == nil {
		t.Error("a packet without room for its mark was sent")
	}
	if _, err := Send(t.Context(), a, &place{b, "10.255.0.9"}, Train{Packets: 1, Bytes: 100}); err == nil {
		t.Error("a train to an address that is not there was sent")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := Send(ctx, a, b, Train{Packets: 10, Bytes: 100, Every: time.Minute}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Send under a deadline = %v, want DeadlineExceeded", err)
	}
}

func TestBandwidth(t *testing.T) {
	a, b := pairOf(t)
	const set = 20_000_000
	shape(t, a, "va", set)
	got, err := Bandwidth(t.Context(), a, b, set)
	if err != nil {
		t.Fatal(err)
	}
	// The token bucket counts the 14 bytes of Ethernet too.
	const want = float64(set) * carBytes / (carBytes + 14)
	if ratio := float64(got) / want; ratio < 0.95 || ratio > 1.05 {
		t.Errorf("Bandwidth() = %d bit/s, want %.0f within 5 %%", got, want)
	}
}

func TestBandwidthOfUnlimitedLink(t *testing.T) {
	a, b := pairOf(t)
	got, err := Bandwidth(t.Context(), a, b, 1_000_000_000_000)
	if !errors.Is(err, ErrStarved) || got <= 0 {
		t.Errorf("Bandwidth() = %d, %v; want a lower bound and ErrStarved", got, err)
	}
}

func TestBandwidths(t *testing.T) {
	a, b := pairOf(t)
	shape(t, a, "va", 20_000_000)
	shape(t, b, "vb", 5_000_000)
	got, err := Bandwidths(t.Context(), []Demand{{Pair{a, b}, 20_000_000}, {Pair{b, a}, 5_000_000}, {Pair{a, b}, 0}})
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Err != nil || got[1].Err != nil || got[0].BPS < 2*got[1].BPS {
		t.Errorf("Bandwidths() = %+v, want about 20 and 5 Mbit/s in this order", got)
	}
	if got[2].Err == nil {
		t.Error("a demand without a bandwidth was met")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Bandwidths(ctx, []Demand{{Pair{a, b}, 1}}); !errors.Is(err, context.Canceled) {
		t.Errorf("Bandwidths of a cancelled context = %v, want Canceled", err)
	}
}

// shape limits what leaves by a device, Ethernet headers counted.
func shape(t *testing.T, ns *testkit.NS, device string, bps uint64) {
	t.Helper()
	err := ns.Do(func() error {
		dev, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		return netlink.QdiscAdd(&netlink.Tbf{
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: dev.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
			Rate:       bps / 8,
			Limit:      1 << 20,
			Buffer:     netlink.Xmittime(bps/8, 2000),
		})
	})
	if err != nil {
		t.Fatalf("shaping %s: %v", device, err)
	}
}

// train is what arrives over a link of bps that packets enter as fast as every.
func train(n int, bps float64, every time.Duration) []Arrival {
	transmission := carBytes * 8 * 1e9 / bps
	cars := make([]Arrival, n)
	free := 0.0
	for i := range cars {
		sent := float64(i) * float64(every)
		free = max(free, sent) + transmission
		cars[i] = Arrival{Seq: i, Sent: int64(sent), At: int64(free + 1e7), Place: i}
	}
	return cars
}

func TestPace(t *testing.T) {
	tests := []struct {
		name  string
		spoil func([]Arrival) []Arrival
	}{
		{"undisturbed", func(c []Arrival) []Arrival { return c }},
		{"machine stalls 5 ms", func(c []Arrival) []Arrival {
			for i := 100; i < 600; i++ { // what is due in the stall comes at its end
				c[i].At = max(c[i].At, c[100].At+5e6)
			}
			return c
		}},
		{"third lost at the receiver's buffer", func(c []Arrival) []Arrival {
			var kept []Arrival
			for i, a := range c {
				if i%3 != 0 {
					kept = append(kept, a)
				}
			}
			return kept
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := float64(Pace(tt.spoil(train(5000, 1e9, 3*time.Microsecond)), carBytes))
			if got < 0.998e9 || got > 1.002e9 {
				t.Errorf("Pace = %.0f, want 1e9 within 0.2 %%", got)
			}
		})
	}
}

func TestStarved(t *testing.T) {
	tests := []struct {
		name  string
		every time.Duration
		want  bool
	}{
		{"sender is faster", 3 * time.Microsecond, false},
		{"sender is slower", 15 * time.Microsecond, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := starved(train(5000, 1e9, tt.every), 1e9); got != tt.want {
				t.Errorf("starved = %v, want %v", got, tt.want)
			}
		})
	}
}
