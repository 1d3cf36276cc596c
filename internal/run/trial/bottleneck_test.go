package trial

import (
	"math"
	"testing"
	"time"

	"skerry/internal/evidence/bottleneck"
	"skerry/internal/lab"
	"skerry/internal/link"
	"skerry/internal/load"
	"skerry/internal/record"
)

func TestWaitSecondsPerNode(t *testing.T) {
	w := &waitSeconds{members: []string{"a", "b"}, clients: []string{"client"}, seconds: map[int64]bottleneck.Second{}}
	w.addSamples([]record.NodeSecond{
		{T: 3, Node: "a", ProcessorWait: 0.4, Throttled: 0.3, DiskWait: 0.2}, {T: 3, Node: "b", ProcessorWait: 2.5},
		{T: 3, Node: "client", ProcessorWait: 0.1, DiskWait: 0.9}, {T: 3, Node: "@host", ProcessorWait: 9}, {T: 4, Node: "@emulator"},
	})
	i := load.Interval{T: 3, Length: 500 * time.Millisecond}
	i.OK = 100
	w.addInterval(i)
	w.addInterval(load.Interval{T: -1, Length: time.Second})
	all := w.all()
	want := bottleneck.Second{Operations: 200, Servers: 1, Quota: 0.3, Client: 0.1, Disk: 0.2}
	if len(all) != 1 || all[0] != want {
		t.Errorf("%+v, want %+v alone", all, want)
	}
}

func TestQueueDelay(t *testing.T) {
	const rate = 8_000_000 // a byte in a microsecond
	links := []lab.Link{{
		ID: "a~b", A: "a", B: "b", AB: link.Quality{Bandwidth: rate, Queue: 50_000},
		BA: link.Quality{Bandwidth: rate, Queue: 20_000},
	}}
	stats := func(ab, ba link.Counters) []link.Stats { return []link.Stats{{ID: "a~b", AB: ab, BA: ba}} }
	for name, tt := range map[string]struct {
		stats []link.Stats
		q     float64
		want  float64
		of    string
	}{
		"nothing dropped":           {stats(link.Counters{Bytes: 9_900_000}, link.Counters{}), 0.99, 0, ""},
		"full at times":             {stats(link.Counters{Bytes: 3_000_000, DroppedQueue: 5}, link.Counters{}), 0.99, 0.05, "a~b"},
		"full at times, the median": {stats(link.Counters{Bytes: 3_000_000, DroppedQueue: 5}, link.Counters{}), 0.5, 0, ""},
		"full always, the median":   {stats(link.Counters{}, link.Counters{Bytes: 9_500_000, DroppedQueue: 5}), 0.5, 0.02, "b~a"},
		"observed": {
			stats(link.Counters{Account: link.Account{Known: true, Packets: 100, Queued: time.Second}}, link.Counters{DroppedQueue: 5}),
			0.99, 0.01 * math.Log(100), "a~b",
		},
		"observed, and empty":     {stats(link.Counters{DroppedQueue: 5, Account: link.Account{Known: true}}, link.Counters{}), 0.99, 0, ""},
		"a link without counters": {nil, 0.99, 0, ""},
	} {
		if got, of := queueDelay(links, tt.stats, 10*time.Second, tt.q); math.Abs(got-tt.want) > 1e-9 || of != tt.of {
			t.Errorf("%s: %g s of %q, want %g of %q", name, got, of, tt.want, tt.of)
		}
	}
}

// With nodes at different distances and an eighth of the requests each, the tail's round trip is that of the farthest
// node.
func TestRoundTripPercentile(t *testing.T) {
	var links []lab.Link
	var used []bottleneck.LinkUse
	for i := range 8 {
		q := link.Quality{Latency: time.Duration(i+1) * time.Millisecond}
		links = append(links, lab.Link{A: "node", B: "client", AB: q, BA: q})
		used = append(used, bottleneck.LinkUse{}, bottleneck.LinkUse{Use: bottleneck.Use{Used: 100}})
	}
	links = append(links, lab.Link{A: "node", B: "other", AB: link.Quality{Latency: time.Hour}})
	used = append(used, bottleneck.LinkUse{Use: bottleneck.Use{Used: 1e9}}, bottleneck.LinkUse{})
	for q, want := range map[float64]float64{0.5: 0.008, 0.99: 0.016} {
		if got := roundTrip(links, used, []string{"client"}, q); got != want {
			t.Errorf("quantile %g: %g s, want %g", q, got, want)
		}
	}
}
