package linkbench

import (
	"context"
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"skerry/internal/base/linger"
	"skerry/internal/evidence/stats"
	"skerry/internal/link"
	"skerry/internal/link/probe"
	"skerry/internal/topology"
	"skerry/test/testkit"
)

// newBench prepares a benchmark as Run does.
func newBench(t testing.TB) *bench {
	t.Helper()
	testkit.Need(t, testkit.Root)
	dir, err := os.MkdirTemp("", "skerry-bench") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	procs := runtime.GOMAXPROCS(runtime.NumCPU() + spareProcs)
	t.Cleanup(func() {
		runtime.GOMAXPROCS(procs)
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return &bench{Options: options(t), dir: dir}
}

func (w *testbed) addVeth() (near, far *endpoint, err error) {
	near, far = &endpoint{w.namespaces[0], "10.98.0.1"}, &endpoint{w.namespaces[1], "10.98.0.2"}
	err = near.Do(func() error {
		return netlink.LinkAdd(&netlink.Veth{
			LinkAttrs: netlink.LinkAttrs{Name: "v"}, PeerName: "v",
			PeerNamespace: netlink.NsFd(int(far.ns.Fd())),
		})
	})
	return near, far, errors.Join(err, near.addAddress("v", near.addr+"/30"), far.addAddress("v", far.addr+"/30"))
}

// BenchmarkStream measures one TCP stream without shaping, compared with a plain veth pair in alternating rounds. The target
// is a ratio of 0.70. -benchtime 5x makes five rounds; the metrics are their medians.
func BenchmarkStream(b *testing.B) {
	w, err := newBench(b).newPairTestbed(b.Context(), link.Quality{})
	if err != nil {
		b.Fatal(err)
	}
	defer w.close()
	near, far, err := w.addVeth()
	if err != nil {
		b.Fatal(err)
	}
	var veth, emulated []float64
	for b.Loop() {
		veth = append(veth, measureGoodput(b, near, far, 500*time.Millisecond, 2*time.Second))
		emulated = append(emulated, measureGoodput(b, w.links[0].a, w.links[0].b, 500*time.Millisecond, 2*time.Second))
	}
	b.ReportMetric(stats.Median(veth)/1e9, "Gbit/s-veth")
	b.ReportMetric(stats.Median(emulated)/1e9, "Gbit/s-link")
	b.ReportMetric(stats.Median(emulated)/stats.Median(veth), "ratio")
}

// BenchmarkLong measures the payload of one TCP stream at 100 ms and 1 Gbit/s after its slow start. The target is 950 Mbit/s.
// Use -benchtime 1x.
func BenchmarkLong(b *testing.B) {
	w, err := newBench(b).newPairTestbed(b.Context(), link.Quality{Latency: 50 * time.Millisecond, Bandwidth: 1_000_000_000})
	if err != nil {
		b.Fatal(err)
	}
	defer w.close()
	for b.Loop() {
		b.ReportMetric(measureGoodput(b, w.links[0].a, w.links[0].b, 10*time.Second, 15*time.Second)/1e6, "Mbit/s")
	}
}

// measureGoodput returns the payload in bit/s that a new stream carries for some time, after it ran for a while.
func measureGoodput(b *testing.B, from, to probe.Inside, after, during time.Duration) float64 {
	b.Helper()
	s, err := startTCPStream(from, to)
	if err != nil {
		b.Fatal(err)
	}
	var bps float64
	if err = linger.For(b.Context(), after); err == nil {
		mark := s.mark()
		err = linger.For(b.Context(), during)
		bps = s.since(mark)
	}
	if err := errors.Join(err, s.stop()); err != nil {
		b.Fatal(err)
	}
	return bps
}

// changeTime is the time and packet loss of changing all links of azure8 at once.
type changeTime struct {
	links int
	times []time.Duration // of each change, from the request to the answer
	// sent and lost are probes that travelled meanwhile.
	sent, lost int
}

// BenchmarkChange measures the time to change all links of azure8 while probes travel. The targets are 10 ms, and no lost
// packet. Use -benchtime 1x.
func BenchmarkChange(b *testing.B) {
	bench := newBench(b)
	for b.Loop() {
		r, err := bench.measureChange(b.Context(), 400)
		if err != nil {
			b.Fatal(err)
		}
		var ms []float64
		for _, d := range r.times {
			ms = append(ms, milliseconds(d))
		}
		b.ReportMetric(stats.Median(ms), "ms-median")
		b.ReportMetric(milliseconds(summarise(r.times).max), "ms-max")
		b.ReportMetric(float64(r.sent), "packets")
		b.ReportMetric(float64(r.lost), "lost")
	}
}

// measureChange changes all links while count probes travel on each.
func (b *bench) measureChange(ctx context.Context, count int) (r changeTime, err error) {
	w, err := b.newAzureTestbed(ctx, 1, true)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	r.links = len(w.links)
	type answer struct {
		results []probe.RTTResult
		err     error
	}
	probed := make(chan answer, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		results, err := probe.MeasureRTT(ctx, directedPairs(w.links), count, 25*time.Millisecond)
		probed <- answer{results, err}
	}()
	var got answer
	for i := 0; got.results == nil && got.err == nil; i++ {
		d, err := w.rescale(ctx, []float64{0.2, 1}[i%2])
		if err != nil {
			cancel()
			<-probed
			return r, err
		}
		r.times = append(r.times, d)
		select {
		case got = <-probed:
		case <-time.After(100 * time.Millisecond):
		}
	}
	for _, p := range got.results {
		r.sent += p.Sent
		r.lost += p.Lost
	}
	return r, got.err
}

func (w *testbed) rescale(ctx context.Context, scale float64) (time.Duration, error) {
	changes := make([]link.Change, len(w.links))
	for i, x := range w.links {
		ab, ba := topology.ScaleQuality(x.ab, scale), topology.ScaleQuality(x.ba, scale)
		changes[i] = link.Change{ID: x.id, AB: &ab, BA: &ba}
	}
	began := time.Now()
	err := w.engine.Set(ctx, changes)
	return time.Since(began), err
}
