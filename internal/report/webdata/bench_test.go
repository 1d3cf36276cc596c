package webdata

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"skerry/internal/record"
	"skerry/web"
)

// BenchmarkReport writes the report of a hundred trials of ten minutes on ten nodes and reports its size.
// SKERRY_BENCH=FOLDER stores the page there for npm run bench, using the page built by npm run build.
func BenchmarkReport(b *testing.B) {
	dir := longRun(b, 100, 600)
	skin := []byte(page)
	folder := os.Getenv("SKERRY_BENCH")
	if folder != "" {
		built, err := web.ReportPage()
		if err != nil {
			b.Fatal(err)
		}
		skin = built
	}
	var w bytes.Buffer
	for b.Loop() {
		d, err := record.Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		w.Reset()
		if err := Write(&w, skin, d); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(w.Len())/1e6, "MB")
	if folder != "" {
		if err := os.WriteFile(filepath.Join(folder, "report.html"), w.Bytes(), 0o600); err != nil {
			b.Fatal(err)
		}
	}
}

// longRun writes one trial and repeats it: five scales with repetitions.
func longRun(b *testing.B, trials, seconds int) string {
	b.Helper()
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	scales := []float64{0.2, 0.4, 0.6, 0.8, 1}
	run := record.Run{Name: "long", Started: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)}
	for i := range trials {
		run.Plan = append(run.Plan, record.Planned{ID: i + 1, Cell: 1 + i%len(scales), Repetition: 1 + i/len(scales),
			Parameters: map[string]any{"database": "redis", "workload": "a", "scale": scales[i%len(scales)]}})
	}
	w, err := record.Create(b.TempDir(), run)
	must(err)
	defer w.Close()
	stored, err := record.Open(stored)
	must(err)
	cloud, err := stored.Topology(1)
	must(err)
	model := stored.Summary.Trials[0]
	r := rand.New(rand.NewPCG(3, 4))
	for _, p := range run.Plan {
		tw, err := w.OpenTrial(p.ID)
		must(err)
		must(tw.Topology(*cloud))
		for s := range int64(seconds) {
			must(tw.Second(record.Second{T: s, Length: 1, OK: 4000 + r.Int64N(1000), ServiceP50: 800 + 100*r.Float64(),
				ServiceP99: 8000 + 3000*r.Float64(), ServiceP999: 3e4 + 1e4*r.Float64(),
				ResponseP50: 900 + 100*r.Float64(), ResponseP99: 9000 + 3000*r.Float64(), ResponseP999: 4e4 + 1e4*r.Float64(), InFlight: 32}))
			for n := range 10 {
				must(tw.NodeSeconds(record.NodeSecond{T: s, Node: fmt.Sprintf("node-%d", n), CPU: 0.3 + 0.1*r.Float64(),
					Memory: 3e8 + r.Int64N(1e6), RxBytes: r.Int64N(1e6), TxBytes: r.Int64N(1e6), WroteBytes: r.Int64N(1e5)}))
			}
		}
		must(tw.Histogram("READ.response", func(w io.Writer) error {
			log := hdrhistogram.NewHistogramLogWriter(w)
			for s := range seconds {
				h := hdrhistogram.New(1, 60_000_000, 3)
				h.SetStartTimeMs(int64(1000 * s))
				h.SetEndTimeMs(int64(1000 * (s + 1)))
				for range 50 {
					if err := h.RecordValues(500+r.Int64N(8000), 90); err != nil {
						return err
					}
				}
				if err := log.OutputIntervalHistogram(h); err != nil {
					return err
				}
			}
			return nil
		}))
		t := model
		t.ID, t.Repetition, t.Parameters = p.ID, p.Repetition, p.Parameters
		must(tw.Finish(t))
	}
	return w.Dir()
}
