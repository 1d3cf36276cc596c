package linkbench

import (
	"context"
	"errors"
	"time"

	"skerry/internal/evidence/stats"
	"skerry/internal/link"
	"skerry/internal/link/probe"
	"skerry/internal/topology"
)

// Change is what changing all links of azure8 at once takes and costs.
type Change struct {
	Links   int `json:"links"`
	Changes int `json:"changes"`
	// Times of one change, from the request to the answer.
	Median float64 `json:"median_ms"`
	Max    float64 `json:"max_ms"`
	// Sent and Lost are probes that travelled meanwhile.
	Sent int `json:"sent"`
	Lost int `json:"lost"`
}

func (b *bench) change(ctx context.Context) (err error) {
	b.Progress("changing all links at once")
	w, err := b.azure(ctx, 1, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	count, interval := pick(b, 400, 120), 25*time.Millisecond
	type answer struct {
		results []probe.RTTResult
		err     error
	}
	probed := make(chan answer, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		results, err := probe.MeasureRTT(ctx, pairs(w.wires), count, interval)
		probed <- answer{results, err}
	}()
	var took []time.Duration
	var got answer
	for i := 0; got.results == nil && got.err == nil; i++ {
		var d time.Duration
		if d, err = w.rescale(ctx, []float64{0.2, 1}[i%2]); err != nil {
			cancel()
			<-probed
			return err
		}
		took = append(took, d)
		select {
		case got = <-probed:
		case <-time.After(100 * time.Millisecond):
		}
	}
	if got.err != nil {
		return got.err
	}
	r := &Change{Links: len(w.wires), Changes: len(took), Max: milliseconds(summarise(took).max)}
	var ms []float64
	for _, d := range took {
		ms = append(ms, milliseconds(d))
	}
	r.Median = stats.Median(ms)
	for _, p := range got.results {
		r.Sent += p.Sent
		r.Lost += p.Lost
	}
	b.result.Change = r
	return nil
}

// rescale changes the latencies of all links to those of a scale.
func (w *world) rescale(ctx context.Context, scale float64) (time.Duration, error) {
	changes := make([]link.Change, len(w.wires))
	for i, x := range w.wires {
		ab, ba := topology.ScaleQuality(x.ab, scale), topology.ScaleQuality(x.ba, scale)
		changes[i] = link.Change{ID: x.id, AB: &ab, BA: &ba}
	}
	began := time.Now()
	err := w.engine.Set(ctx, changes)
	return time.Since(began), err
}
