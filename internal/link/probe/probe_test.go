package probe

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"skerry/test/testkit"
)

// pairOf returns two namespaces connected by a plain veth pair.
func pairOf(t *testing.T) (a, b *testkit.NS) {
	t.Helper()
	testkit.Need(t, testkit.Root)
	a, b = testkit.Namespace(t), testkit.Namespace(t)
	testkit.VethPair(t, a, b)
	return a, b
}

// place is an Inside with a given address.
type place struct {
	*testkit.NS
	addr string
}

func (p *place) Addr() string { return p.addr }

func TestRTT(t *testing.T) {
	a, b := pairOf(t)
	got, err := MeasureRTT(t.Context(), []Pair{{a, b}, {b, a}, {a, a}}, 10, 5*time.Millisecond)
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
	b.Assign(t, "vb", "10.255.1.2/24") // an address without a route from a
	tests := []struct{ name, to string }{
		{"broadcast refused", "10.255.0.3"},
		{"no route", "10.255.1.2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := MeasureRTT(t.Context(), []Pair{{a, &place{b, tt.to}}}, 3, time.Millisecond)
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
	if _, err := MeasureRTT(ctx, []Pair{{a, b}}, 1000, time.Second); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("RTT under a deadline = %v, want DeadlineExceeded", err)
	}
	if _, err := MeasureRTT(t.Context(), []Pair{{a, &place{b, "nowhere"}}}, 1, time.Second); err == nil {
		t.Error("RTT to an invalid address succeeded")
	}
}

func TestSend(t *testing.T) {
	a, b := pairOf(t)
	got, err := SendTrain(t.Context(), a, b, Train{Packets: 100, Bytes: 200, Every: 100 * time.Microsecond, Burst: 10})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 100 {
		t.Fatalf("%d of 100 packets arrived", len(got))
	}
	for i, a := range got {
		if a.Seq != i || a.Place != i || a.Delay() < 0 {
			t.Errorf("arrival %d is %+v: out of order or too early", i, a)
		}
	}
	if _, err := SendTrain(t.Context(), a, b, Train{Packets: 1, Bytes: MinPacketBytes - 1}); err == nil {
		t.Error("sent a packet too short for its mark")
	}
	if _, err := SendTrain(t.Context(), a, &place{b, "10.255.0.9"}, Train{Packets: 1, Bytes: 100}); err == nil {
		t.Error("sent a train to a missing address")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := SendTrain(ctx, a, b, Train{Packets: 10, Bytes: 100, Every: time.Minute}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Send under a deadline = %v, want DeadlineExceeded", err)
	}
}

// A sender that starts before its receiver listens retries until it does.
func TestTrainBetweenMachines(t *testing.T) {
	a, b := pairOf(t)
	to := netip.MustParseAddr(b.Addr())
	m, train := Meeting{Port: 20000, Nonce: 7}, Train{Packets: 100, Bytes: 200}
	sent := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { sent <- DispatchTrain(ctx, a, to, m, train) }()
	// A packet of another train goes to a port without a listener, and to one with a listener.
	stranger := Meeting{Port: m.Port, Nonce: 8}
	strange := make(chan error, 1)
	go func() { strange <- DispatchTrain(ctx, a, to, stranger, train) }()
	got, err := ReceiveTrain(ctx, b, m, train)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-sent; err != nil || len(got) != train.Packets {
		t.Errorf("%d of %d packets arrived, %v", len(got), train.Packets, err)
	}
	cancel()
	if err := <-strange; !errors.Is(err, context.Canceled) {
		t.Errorf("a sender without a receiver, after its context ended: %v", err)
	}
	if _, err := ReceiveTrain(ctx, b, m, train); !errors.Is(err, context.Canceled) {
		t.Errorf("a receiver without a sender, after its context ended: %v", err)
	}
	if _, err := ReceiveTrain(t.Context(), b, m, Train{Packets: 1}); err == nil {
		t.Error("waited for a packet too short for its mark")
	}
}

// A receiver on a busy machine may consider a train complete while it is still being sent.
func TestDispatchToReceiverThatGaveUp(t *testing.T) {
	a, b := pairOf(t)
	m := Meeting{Port: 20000, Nonce: 7}
	sent := make(chan error, 1)
	go func() {
		sent <- DispatchTrain(t.Context(), a, netip.MustParseAddr(b.Addr()), m, Train{Packets: 20, Bytes: 200, Every: 50 * time.Millisecond})
	}()
	got, err := ReceiveTrain(t.Context(), b, m, Train{Packets: 20, Bytes: 200, Quiet: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-sent; err != nil {
		t.Errorf("%d packets arrived, and then %v", len(got), err)
	}
}

func TestBandwidth(t *testing.T) {
	a, b := pairOf(t)
	const set = 20_000_000
	shape(t, a, "va", set)
	// The token bucket also counts the 14 bytes of Ethernet.
	const want = float64(set) * packetBytes / (packetBytes + 14)
	for range 10 {
		got, err := MeasureBandwidth(t.Context(), localWay(a, b), set)
		if errors.Is(err, ErrDisturbed) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if ratio := float64(got) / want; ratio < 0.99 || ratio > 1.01 {
			t.Errorf("Bandwidth() = %d bit/s, want %.0f within 1 %%", got, want)
		}
		return
	}
	testkit.Lacks(t, testkit.Quiet, ErrDisturbed)
}

func TestBandwidthOfUnlimitedLink(t *testing.T) {
	a, b := pairOf(t)
	const wanted = 1_000_000_000_000
	got, err := MeasureBandwidth(t.Context(), localWay(a, b), wanted)
	if !errors.Is(err, ErrStarved) || got < 0 || got >= wanted {
		t.Errorf("Bandwidth() = %d, %v; want a lower bound and ErrStarved", got, err)
	}
}

// A train is sent again if one packet arrived; a link without any arrival is not tried again.
func TestBandwidthOfTruncatedTrain(t *testing.T) {
	const set = 948_000_000
	whole := AnalyzeTrain(train(trainLength(set), set, time.Microsecond), packetBytes)
	for name, tt := range map[string]struct {
		came []TrainResult
		bps  int64
		err  error
	}{
		"once":         {[]TrainResult{{Packets: 1}, whole}, whole.BPS, nil},
		"every time":   {[]TrainResult{{Packets: 1}, {Packets: 1}, {Packets: 1}, {Packets: 1}, {Packets: 1}}, 0, ErrDisturbed},
		"nothing":      {[]TrainResult{{}}, 0, ErrNoAnswer},
		"then nothing": {[]TrainResult{{Packets: 1}, {}}, 0, ErrNoAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			sent := 0
			w := Way{Send: func(context.Context, Train) (TrainResult, error) { sent++; return tt.came[sent-1], nil }}
			got, err := MeasureBandwidth(t.Context(), w, set)
			if got != tt.bps || !errors.Is(err, tt.err) || sent != len(tt.came) {
				t.Errorf("Bandwidth() = %d, %v after %d trains; want %d, %v after %d", got, err, sent, tt.bps, tt.err, len(tt.came))
			}
		})
	}
}

func TestBandwidths(t *testing.T) {
	a, b := pairOf(t)
	shape(t, a, "va", 20_000_000)
	shape(t, b, "vb", 5_000_000)
	requests := []BandwidthRequest{{localWay(a, b), 20_000_000}, {localWay(b, a), 5_000_000}, {localWay(a, b), 0}}
	got, err := MeasureBandwidths(t.Context(), requests)
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Err != nil || got[1].Err != nil || got[0].BPS < 2*got[1].BPS {
		t.Errorf("Bandwidths() = %+v, want about 20 and 5 Mbit/s in this order", got)
	}
	if got[2].Err == nil {
		t.Error("accepted a demand without a bandwidth")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := MeasureBandwidths(ctx, []BandwidthRequest{{localWay(a, b), 1}}); !errors.Is(err, context.Canceled) {
		t.Errorf("Bandwidths of a cancelled context = %v, want Canceled", err)
	}
}

// shape limits the rate of a device, including Ethernet headers.
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

// train returns the arrivals over a link of bps with a sending interval of every.
func train(n int, bps float64, every time.Duration) []Arrival {
	transmission := packetBytes * 8 * 1e9 / bps
	cars := make([]Arrival, n)
	free := 0.0
	for i := range cars {
		sent := float64(i) * float64(every)
		free = max(free, sent) + transmission
		cars[i] = Arrival{Seq: i, Sent: int64(sent), At: int64(free + 1e7), Place: i}
	}
	return cars
}

func TestAnalyzeTrain(t *testing.T) {
	const faster = 3 * time.Microsecond // than the link's 10
	tests := []struct {
		name      string
		arrivals  []Arrival
		starved   bool
		disturbed bool
	}{
		{"undisturbed", train(5000, 1e9, faster), false, false},
		{"machine stalls 5 ms", stalled(train(5000, 1e9, faster)), false, false},
		{"a third lost before the link", thinned(train(5000, 1e9, faster)), false, false},
		{"sender stalls", paused(5000, 1e9, faster), false, false},
		{"sender is slower than the link", train(5000, 1e9, 15*time.Microsecond), true, false},
		{"one packet", train(1, 1e9, faster), true, false},
		{"link loses 7 ms in the middle", lost(train(5000, 1e9, faster), 2500, 7e6), false, true},
		{"link loses 7 ms after a third", lost(train(5000, 1e9, faster), 1700, 7e6), false, true},
		{"link loses 1 ms in the middle", lost(train(5000, 1e9, faster), 2500, 1e6), false, true},
		{"link loses 5 ms of a short train", lost(train(12, 1e6, faster), 6, 5e6), false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			came := AnalyzeTrain(tt.arrivals, packetBytes)
			bps, share, even := came.BPS, came.Share, came.Even
			if got := share >= minShare && even < minEven; got != tt.disturbed {
				t.Errorf("%.0f %% arrived evenly, want disturbed: %v", even*100, tt.disturbed)
			}
			if tt.disturbed {
				return
			}
			if got := share < minShare; got != tt.starved {
				t.Errorf("the pace was computed from %.0f %% of the packets, want starved: %v", share*100, tt.starved)
			}
			if !tt.starved && (bps < 0.998e9 || bps > 1.002e9) {
				t.Errorf("Pace = %d, want 1e9 within 0.2 %%", bps)
			}
		})
	}
}

// lost is a train during a stall of the link whose packets are dropped.
func lost(arrivals []Arrival, from int, ns int64) []Arrival {
	for i := from; i < len(arrivals); i++ {
		arrivals[i].At += ns
	}
	return arrivals
}

// For any position and duration of a stall in a train, the even part gives the rate within 1 %.
func TestAnalyzeTrainIsCorrectOrDisturbed(t *testing.T) {
	for _, n := range []int{12, 100, 5000} {
		bps := float64(n) * packetBytes * 8 / 0.05
		for tenth := 1; tenth < 10; tenth++ {
			for ns := int64(10e3); ns < 50e6; ns = ns * 5 / 4 {
				got := AnalyzeTrain(lost(train(n, bps, time.Microsecond), n*tenth/10, ns), packetBytes)
				if got.Share >= minShare && got.Even >= minEven && (float64(got.BPS) < 0.99*bps || float64(got.BPS) > 1.01*bps) {
					t.Errorf("%d packets, %v lost after %d tenths: %.2f %% off, not reported", n, time.Duration(ns), tenth, 100*(float64(got.BPS)/bps-1))
				}
			}
		}
	}
}

func TestUndisturbedSamples(t *testing.T) {
	p := &pinger{flights: [][]flight{{{100, 200}, {300, 400}, {500, 600}, {700, 0}}}, stalls: []stall{{150, 160}, {580, 900}}}
	if d := cmp.Diff([]time.Duration{100}, p.undisturbed(0)); d != "" {
		t.Error(d)
	}
}

func TestMeasureUndisturbedRTT(t *testing.T) {
	a, b := pairOf(t)
	got, err := MeasureUndisturbedRTT(t.Context(), []Pair{{a, b}, {b, a}}, 8, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range got {
		if r.Sent%8 != 0 || r.Sent != r.Lost+r.Disturbed+len(r.Samples) || len(r.Samples) < 4 || r.Median <= 0 {
			t.Errorf("pair %d: %+v", i, r)
		}
	}
}

// stalled delivers the packets of each 5 ms at their end.
func stalled(arrivals []Arrival) []Arrival {
	for i := 100; i < 600; i++ {
		arrivals[i].At = max(arrivals[i].At, arrivals[100].At+5e6)
	}
	return arrivals
}

// thinned removes packets that never reached the link, so that later ones move up.
func thinned(arrivals []Arrival) []Arrival {
	var kept []Arrival
	for i, a := range arrivals {
		if i%3 != 0 {
			a.At, a.Place = arrivals[len(kept)].At, len(kept)
			kept = append(kept, a)
		}
	}
	return kept
}

// paused is a train that its sender interrupted twice, until the link was idle.
func paused(n int, bps float64, every time.Duration) []Arrival {
	var arrivals []Arrival
	for part := range 3 {
		later := int64(part) * 100e6
		for _, a := range train(n/3, bps, every) {
			arrivals = append(arrivals, Arrival{Seq: len(arrivals), Place: len(arrivals), Sent: a.Sent + later, At: a.At + later})
		}
	}
	return arrivals
}

// localWay returns the direction between two places on this machine.
func localWay(from, to Inside) Way {
	ends := []string{from.Addr(), to.Addr()}
	slices.Sort(ends)
	return Way{Link: strings.Join(ends, "~"), From: from.Addr(), To: to.Addr(), Send: func(ctx context.Context, t Train) (TrainResult, error) {
		arrivals, err := SendTrain(ctx, from, to, t)
		return AnalyzeTrain(arrivals, t.Bytes), err
	}}
}
