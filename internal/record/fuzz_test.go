package record

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// FuzzOpen reads a run directory with any content: it opens or returns an error.
func FuzzOpen(f *testing.F) {
	f.Add([]byte(`{"schema":"skerry/run/v1","plan":[{"id":1}]}`), []byte(`{"schema":"skerry/summary/v1","trials":[{"id":1}]}`),
		[]byte(`{"id":2,"state":"ok"}`), []byte(`{"t":1,"kind":"scale","message":""}`))
	f.Add([]byte(`{"schema":"skerry/run/v9"}`), []byte(`{`), []byte(``), []byte("\n\n{}\nx"))
	f.Fuzz(func(t *testing.T, run, summary, trial, events []byte) {
		dir := t.TempDir()
		two := filepath.Join(dir, trialsDir, "2")
		noError(t, os.MkdirAll(two, 0o755))
		for path, data := range map[string][]byte{
			filepath.Join(dir, runFile): run, filepath.Join(dir, summaryFile): summary,
			filepath.Join(two, trialFile): trial, filepath.Join(two, eventsFile): events,
			filepath.Join(two, topologyFile): trial,
		} {
			noError(t, os.WriteFile(path, data, 0o600))
		}
		d, err := Open(dir)
		if err != nil {
			known := errors.Is(err, ErrNotRun) || errors.Is(err, ErrNewer) || errors.Is(err, ErrDamaged)
			if !known {
				t.Errorf("untyped error: %v", err)
			}
			return
		}
		seen := map[int]bool{}
		for _, tr := range d.Summary.Trials {
			if seen[tr.ID] {
				t.Errorf("trial %d is listed twice", tr.ID)
			}
			seen[tr.ID] = true
		}
		_, errEvents := d.Events(2)
		_, errTopology := d.Topology(2)
		for _, err := range []error{errEvents, errTopology} {
			if err != nil && !errors.Is(err, ErrDamaged) {
				t.Errorf("untyped error: %v", err)
			}
		}
	})
}

// FuzzTables reads parquet files and histogram logs with any content.
func FuzzTables(f *testing.F) {
	w, err := Create(f.TempDir(), testRun(1))
	if err != nil {
		f.Fatal(err)
	}
	defer w.Close()
	tw, err := w.OpenTrial(1)
	if err != nil {
		f.Fatal(err)
	}
	if err := errors.Join(tw.Second(Second{T: 1, OK: 2}), tw.Finish(Trial{State: TrialOK})); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(w.trialDir(1), timelineFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte("#[StartTime: 1.0 (seconds since epoch)]\n0.1,1.0,2.0,HISTFAAAAEV42pNpmSz"))
	f.Add([]byte("Tag=A,0,1,1,x\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "file")
		noError(t, os.WriteFile(path, data, 0o600))
		if _, err := readTable[Second](path); err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("table: untyped error: %v", err)
		}
		if err := readIntervals(path, func(_ float64, h *hdrhistogram.PackedHistogram) { MergeHistogram(nil, h) }); err != nil &&
			!errors.Is(err, ErrDamaged) {
			t.Errorf("histogram: untyped error: %v", err)
		}
	})
}
