package linktest

import (
	"fmt"
	"testing"
	"time"

	"skerry/internal/link"
	"skerry/internal/link/probe"
	"skerry/test/testkit"
)

// bench is an engine with two namespaces.
type bench struct {
	t      *testing.T
	engine link.Engine
	a, b   *testkit.NS
	closed bool
}

func (s *suite) bench(t *testing.T) *bench {
	t.Helper()
	// Namespaces are created first, so that the engine is closed before they are removed.
	b := &bench{t: t, a: testkit.Namespace(t), b: testkit.Namespace(t)}
	b.engine = s.newEngine(t)
	t.Cleanup(b.close)
	return b
}

func (b *bench) close() {
	if b.closed {
		return
	}
	b.closed = true
	if err := b.engine.Close(); err != nil {
		b.t.Errorf("closing the engine: %v", err)
	}
}

// spec describes the i-th link of the bench.
func (b *bench) spec(i int, ab, ba link.Quality) link.Spec {
	return link.Spec{
		ID: fmt.Sprintf("link-%d", i),
		A:  link.End{Netns: b.a.Path(), Device: fmt.Sprintf("a%d", i)},
		B:  link.End{Netns: b.b.Path(), Device: fmt.Sprintf("b%d", i)},
		AB: ab, BA: ba, Seed: uint64(i) + 1,
	}
}

func (b *bench) create(specs ...link.Spec) {
	b.t.Helper()
	if err := b.engine.Create(b.t.Context(), specs); err != nil {
		b.t.Fatalf("Create: %v", err)
	}
}

// wire is a link with addresses.
type wire struct {
	*bench
	id        string
	near, far *end
}

// end is one end of a wire; it implements probe.Inside.
type end struct {
	*testkit.NS
	addr string
}

func (e *end) Addr() string { return e.addr }

// wire creates and addresses the i-th link, at most 256.
func (b *bench) wire(i int, ab, ba link.Quality) *wire {
	b.t.Helper()
	b.create(b.spec(i, ab, ba))
	return b.addressLink(i)
}

func (b *bench) addressLink(i int) *wire {
	b.t.Helper()
	spec := b.spec(i, link.Quality{}, link.Quality{})
	w := &wire{
		bench: b, id: spec.ID,
		near: &end{b.a, fmt.Sprintf("10.77.%d.1", i)},
		far:  &end{b.b, fmt.Sprintf("10.77.%d.2", i)},
	}
	b.a.Assign(b.t, spec.A.Device, w.near.addr+"/30")
	b.b.Assign(b.t, spec.B.Device, w.far.addr+"/30")
	return w
}

// wire creates a bench with one link.
func (s *suite) wire(t *testing.T, ab, ba link.Quality) *wire {
	t.Helper()
	return s.bench(t).wire(0, ab, ba)
}

func (w *wire) set(ab, ba *link.Quality) {
	w.t.Helper()
	if err := w.change(ab, ba); err != nil {
		w.t.Fatal(err)
	}
}

// change is set for other goroutines than the test's.
func (w *wire) change(ab, ba *link.Quality) error {
	if err := w.engine.Set(w.t.Context(), []link.Change{{ID: w.id, AB: ab, BA: ba}}); err != nil {
		return fmt.Errorf("setting link %s: %w", w.id, err)
	}
	return nil
}

func (w *wire) stats() link.Stats {
	w.t.Helper()
	stats, err := w.engine.Stats(w.t.Context(), w.id)
	if err != nil || len(stats) != 1 || stats[0].ID != w.id {
		w.t.Fatalf("Stats(%s) = %+v, %v; want the one link", w.id, stats, err)
	}
	return stats[0]
}

// statsWhen waits until the counters, which may lag behind the packets, satisfy done.
func (w *wire) statsWhen(what string, done func(link.Stats) bool) link.Stats {
	w.t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for {
		got := w.stats()
		if done(got) {
			return got
		}
		if time.Now().After(deadline) {
			w.t.Errorf("counters are %+v, want %s", got, what)
			return got
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (w *wire) send(train probe.Train) []probe.Arrival {
	w.t.Helper()
	return w.sendTo(w.near, w.far, train)
}

func (w *wire) sendTo(from, to *end, train probe.Train) []probe.Arrival {
	w.t.Helper()
	if !train.Linger && train.Complete == nil {
		train.Complete = w.accounted(from, train.Packets)
	}
	arrivals, err := probe.SendTrain(w.t.Context(), from, to, train)
	if err != nil {
		w.t.Fatalf("sending %d packets from %s to %s: %v", train.Packets, from.addr, to.addr, err)
	}
	return arrivals
}

// roundTrips measures until no echo was lost.
func (b *bench) roundTrips(pairs []probe.Pair) [][]time.Duration {
	b.t.Helper()
	var samples [][]time.Duration
	for range maxAttempts {
		got, err := probe.MeasureRTT(b.t.Context(), pairs, 10, 20*time.Millisecond)
		if err != nil {
			b.t.Fatal(err)
		}
		samples = nil
		lost := 0
		for _, r := range got {
			samples = append(samples, r.Samples)
			lost += r.Lost
		}
		if lost == 0 {
			return samples
		}
	}
	b.t.Errorf("echoes were lost in each of %d attempts", maxAttempts)
	return samples
}

// accounted returns a Train.Enough. It reports whether the engine has delivered or dropped n packets from now on, and
// every delivered packet has arrived.
func (w *wire) accounted(from *end, n int) func(arrived int) bool {
	count := func() (c link.Counters, ok bool) {
		stats, err := w.engine.Stats(w.t.Context(), w.id)
		if err != nil || len(stats) != 1 {
			return c, false // the test itself reports the error
		}
		if from == w.near {
			return stats[0].AB, true
		}
		return stats[0].BA, true
	}
	before, ok := count()
	return func(arrived int) bool {
		now, still := count()
		delivered := int(now.Packets - before.Packets)
		dropped := int(now.DroppedLoss + now.DroppedQueue - before.DroppedLoss - before.DroppedQueue)
		return ok && still && delivered == arrived && delivered+dropped == n
	}
}

// flood is a train that counts n packets, as fast as possible without overflowing the devices.
func (s *suite) flood(n int) probe.Train {
	return probe.Train{
		Packets: n, Bytes: 200, Burst: 16,
		Every: s.pace * 50 * time.Microsecond,
		Quiet: s.pace * time.Second, Patience: s.pace * time.Second,
	}
}
