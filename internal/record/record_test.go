package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"skerry/internal/machine/files"
	"skerry/internal/topology"
)

var start = time.Date(2026, 11, 21, 18, 30, 0, 0, time.UTC)

// testRun plans n trials of one workload each.
func testRun(n int) Run {
	r := Run{Name: "quick start", Started: start, Seed: 7, Host: Machine{Name: "box", Cores: 2},
		Experiment: []byte(`{"name":"quick start"}`)}
	for i := 1; i <= n; i++ {
		r.Plan = append(r.Plan, Planned{ID: i, Cell: i, Repetition: 1, Parameters: map[string]any{"scale": float64(i) / 5}})
	}
	return r
}

func create(t *testing.T, n int) *Writer {
	t.Helper()
	w, err := Create(t.TempDir(), testRun(n))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func openTrial(t *testing.T, w *Writer, id int) *TrialWriter {
	t.Helper()
	tw, err := w.OpenTrial(id)
	if err != nil {
		t.Fatal(err)
	}
	return tw
}

func finish(t *testing.T, w *Writer, id int, trial Trial) {
	t.Helper()
	if err := openTrial(t, w, id).Finish(trial); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, dir string) *Dir {
	t.Helper()
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestWriteAndRead(t *testing.T) {
	w := create(t, 1)
	tw := openTrial(t, w, 1)

	seconds := []Second{{T: -1, OK: 10}, {T: 0, OK: 20, Failed: 1, ServiceP99: 1234.5}}
	nodes := []NodeSecond{{T: 0, Node: "pune", CPU: 0.5}, {T: 0, Node: "@host", CPU: 1.5}}
	due := Moment{NS: 1e9, Wall: time.Date(2026, 11, 21, 18, 30, 0, 0, time.UTC)}
	began := Moment{NS: due.NS + 2e6, Wall: due.Wall.Add(2 * time.Millisecond)}
	leave := Event{T: 1.002, Kind: "leave", Message: "pune leaves", ID: 1, Turn: 1,
		Effect: &Effect{On: OnNodes, Makes: Down, Settles: true, Member: Leaves}, Targets: []string{"pune"},
		Spec: json.RawMessage(`{"at":"1s"}`), State: EventBegun, Apply: &Step{Due: due, Began: &began}}
	left := leave
	left.State, left.Apply = EventActive, &Step{Due: due, Began: &began, Accepted: &began, Completed: &began, Bytes: 9}
	events := []Event{{T: 0.5, Kind: "scale", Message: "all links to 0.2"}, left, {T: 2, Kind: "drift", Message: "a link changed"}}
	topo := topology.Topology{Name: "azure8", Sites: []topology.Site{{Name: "pune", Lat: 18.5, Lon: 73.9, Located: true}}}
	hist := hdrhistogram.New(1, 60e6, 3)
	for v := range int64(1000) {
		if err := hist.RecordValue(v * 100); err != nil {
			t.Fatal(err)
		}
	}
	logFile := filepath.Join(t.TempDir(), "redis.log")
	if err := os.WriteFile(logFile, []byte("ready\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, s := range seconds {
		noError(t, tw.Second(s))
	}
	noError(t, tw.NodeSeconds(nodes...))
	for _, e := range []Event{events[0], leave, events[2], left} { // recorded again on each state change
		noError(t, tw.Event(e))
	}
	noError(t, tw.Topology(topo))
	noError(t, tw.Logs(t.Context(), map[string]files.File{"redis pune": {On: files.Local{}, Path: logFile}}, nil))
	noError(t, tw.YCSB(func(w io.Writer) error { _, err := io.WriteString(w, "[OVERALL], RunTime(ms), 1\n"); return err }))
	noError(t, tw.Histogram("READ.service", func(w io.Writer) error { return writeLog(w, hist, hist) }))
	trial := Trial{State: TrialOK, Throughput: 1234.5, Traffic: &Traffic{TotalBytes: 99}, Verdict: Verdict{State: Valid}}
	noError(t, tw.Finish(trial))
	noError(t, w.Finish())

	d := open(t, w.Dir())
	trial.ID, trial.Repetition, trial.Parameters = 1, 1, map[string]any{"scale": 0.2}
	if diff := cmp.Diff([]Trial{trial}, d.Summary.Trials); diff != "" {
		t.Errorf("trials (-want +got):\n%s", diff)
	}
	if !d.Summary.Complete || d.Running || len(d.Notes) > 0 || d.Run.Finished.IsZero() {
		t.Errorf("complete %v, running %v, notes %v, finished %v", d.Summary.Complete, d.Running, d.Notes, d.Run.Finished)
	}
	gotSeconds, err := d.Timeline(1)
	check(t, "timeline", seconds, gotSeconds, err)
	gotNodes, err := d.Nodes(1)
	check(t, "nodes", nodes, gotNodes, err)
	gotEvents, err := d.Events(1)
	check(t, "events", events, gotEvents, err)
	gotTopo, err := d.Topology(1)
	check(t, "topology", &topo, gotTopo, err)
	sum, err := d.Histogram(1, "READ.service")
	noError(t, err)
	if sum == nil || sum.TotalCount() != 2000 {
		t.Errorf("histogram: %v, want both intervals' 2000 values", sum)
	} else if p := sum.ValueAtPercentile(50); p < 49900 || p > 50100 {
		t.Errorf("median %d us, want 50000", p)
	}
	b, err := os.ReadFile(filepath.Join(w.Dir(), "trials/1/logs/redis-pune.log"))
	check(t, "log", "ready\n", string(b), err)
}

func writeLog(w io.Writer, hists ...*hdrhistogram.Histogram) error {
	l := hdrhistogram.NewHistogramLogWriter(w)
	for i, h := range hists {
		h.SetStartTimeMs(int64(i) * 1000)
		h.SetEndTimeMs(int64(i+1) * 1000)
		if err := l.OutputIntervalHistogram(h); err != nil {
			return err
		}
	}
	return nil
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func check[T any](t *testing.T, what string, want, got T, err error) {
	t.Helper()
	noError(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestRunsInOneSecond(t *testing.T) {
	parent := t.TempDir()
	var names []string
	for range 2 {
		w, err := Create(parent, testRun(1))
		noError(t, err)
		defer w.Close()
		names = append(names, filepath.Base(w.Dir()))
	}
	if diff := cmp.Diff([]string{"20261121-183000-quick-start", "20261121-183000-quick-start-2"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	d := open(t, filepath.Join(parent, "latest"))
	if got := filepath.Base(d.Path); got != names[1] {
		t.Errorf("latest is %s, want %s", got, names[1])
	}
	if !d.Running {
		t.Error("a run with a writer is not reported as running")
	}
}

func TestUserOwnedLatestIsKept(t *testing.T) {
	parent := t.TempDir()
	mine := filepath.Join(parent, "latest")
	noError(t, os.WriteFile(mine, []byte("mine"), 0o600))
	w, err := Create(parent, testRun(1))
	noError(t, err)
	defer w.Close()
	b, err := os.ReadFile(mine)
	check(t, "latest", "mine", string(b), err)
}

// A run killed at any time: no Finish, a trial in progress, its tables unwritten.
func TestResumeAfterKill(t *testing.T) {
	w := create(t, 4)
	finish(t, w, 1, Trial{State: TrialOK, Goodput: 11})
	finish(t, w, 2, Trial{State: TrialFailed, Error: "no cluster"})
	killed := openTrial(t, w, 3)
	noError(t, killed.Second(Second{T: 0, OK: 1}))
	noError(t, killed.Event(Event{Kind: "scale"}))
	noError(t, w.Close())

	d := open(t, w.Dir())
	if diff := cmp.Diff([]int{3}, d.Unfinished); diff != "" || d.Summary.Complete || len(d.Summary.Trials) != 2 {
		t.Fatalf("unfinished %v, complete %v, trials %d; want [3], false, 2", d.Unfinished, d.Summary.Complete, len(d.Summary.Trials))
	}

	r, err := Resume(w.Dir(), false)
	noError(t, err)
	defer r.Close()
	var left []int
	for _, p := range r.Remaining() {
		left = append(left, p.ID)
		finish(t, r, p.ID, Trial{State: TrialOK, Goodput: float64(p.ID)})
	}
	if diff := cmp.Diff([]int{2, 3, 4}, left); diff != "" {
		t.Errorf("remaining (-want +got):\n%s", diff)
	}
	noError(t, r.Finish())

	d = open(t, w.Dir())
	var goodput []float64
	for _, tr := range d.Summary.Trials {
		goodput = append(goodput, tr.Goodput)
	}
	if diff := cmp.Diff([]float64{11, 2, 3, 4}, goodput); diff != "" {
		t.Errorf("goodput of trials (-want +got):\n%s", diff)
	}
	if !d.Summary.Complete || len(d.Unfinished) > 0 || len(d.Run.Resumed) != 1 {
		t.Errorf("complete %v, unfinished %v, resumed %v", d.Summary.Complete, d.Unfinished, d.Run.Resumed)
	}
	if _, err := Resume(w.Dir(), false); !errors.Is(err, ErrFinished) {
		t.Errorf("resuming a complete run: %v, want ErrFinished", err)
	}
}

func TestResumeRepeatsSuspectTrials(t *testing.T) {
	w := create(t, 2)
	finish(t, w, 1, Trial{State: TrialOK, Verdict: Verdict{State: Valid}})
	finish(t, w, 2, Trial{State: TrialOK, Verdict: Verdict{State: Suspect}})
	noError(t, w.Close())
	if _, err := Resume(w.Dir(), false); !errors.Is(err, ErrFinished) {
		t.Errorf("without: %v, want ErrFinished", err)
	}
	r, err := Resume(w.Dir(), true)
	noError(t, err)
	defer r.Close()
	if left := r.Remaining(); len(left) != 1 || left[0].ID != 2 {
		t.Errorf("remaining %v, want trial 2", left)
	}
	finish(t, r, 2, Trial{State: TrialInterrupted})
	if s := r.Summary().Trials[1]; s.State != TrialOK {
		t.Errorf("an interrupted attempt replaced the suspect trial: %s", s.State)
	}
}

// A repeated trial replaces the earlier attempt, which is stored and listed; an attempt that only failed is removed.
func TestReplacedTrialsAreKept(t *testing.T) {
	w := create(t, 2)
	suspect := Verdict{State: Suspect, Reasons: []string{"late"}, Kinds: []string{"driver-late"}}
	finish(t, w, 1, Trial{State: TrialFailed})
	for i, v := range []Verdict{suspect, suspect, {State: Valid}} {
		finish(t, w, 1, Trial{State: TrialOK, Goodput: float64(i + 1), Verdict: v})
	}
	finish(t, w, 1, Trial{State: TrialFailed}) // a failed attempt does not replace the result
	d := open(t, w.Dir())
	x := d.Summary.Trials[0]
	want := []Replaced{
		{Dir: "replaced/1-1", Goodput: 1, Verdict: suspect}, {Dir: "replaced/1-2", Goodput: 2, Verdict: suspect},
	}
	if diff := cmp.Diff(want, x.Replaced); diff != "" || x.Goodput != 3 {
		t.Errorf("goodput %g, replaced (-want +got):\n%s", x.Goodput, diff)
	}
	for dir, goodput := range map[string]float64{"trials/1": 3, "replaced/1-1": 1, "replaced/1-2": 2} {
		var kept Trial
		noError(t, readJSON(filepath.Join(w.Dir(), dir, trialFile), "", &kept))
		if kept.Goodput != goodput {
			t.Errorf("%s is of the attempt with %g operations/s, want %g", dir, kept.Goodput, goodput)
		}
	}
	if len(d.Summary.Trials) != 1 || len(d.Notes)+len(d.Unfinished) > 0 {
		t.Errorf("%d trials, notes %q, unfinished %v", len(d.Summary.Trials), d.Notes, d.Unfinished)
	}
}

func TestTwoWritersOfOneRun(t *testing.T) {
	w := create(t, 1)
	if _, err := Resume(w.Dir(), false); !errors.Is(err, ErrBusy) {
		t.Errorf("resuming a running run: %v, want ErrBusy", err)
	}
}

// The rename of a trial's directory and the update of the summary are two steps; a kill may come in between.
func TestTrialMissingFromSummary(t *testing.T) {
	for _, damage := range []struct {
		name string
		do   func(path string) error
	}{
		{"older", func(path string) error {
			return os.WriteFile(path, []byte(`{"schema":"skerry/summary/v1","trials":[]}`), 0o600)
		}},
		{"missing", os.Remove},
		{"truncated", func(path string) error { return os.Truncate(path, 40) }},
		{"empty", func(path string) error { return os.Truncate(path, 0) }},
	} {
		t.Run(damage.name, func(t *testing.T) {
			w := create(t, 2)
			finish(t, w, 1, Trial{State: TrialOK, Goodput: 5})
			noError(t, damage.do(filepath.Join(w.Dir(), "summary.json")))
			d := open(t, w.Dir())
			if len(d.Summary.Trials) != 1 || d.Summary.Trials[0].Goodput != 5 {
				t.Errorf("trials: %+v, want the one that ended", d.Summary.Trials)
			}
		})
	}
}

func TestOpenErrors(t *testing.T) {
	for _, c := range []struct {
		name, file, text string
		want             error
		says             string
	}{
		{"foreign directory", "notes.txt", "hello", ErrNotRun, "no run.json"},
		{"another tool's run.json", "run.json", `{"schema":"other/v1"}`, ErrNotRun, `"other/v1"`},
		{"no schema", "run.json", `{}`, ErrNotRun, `""`},
		{"newer run", "run.json", `{"schema":"skerry/run/v2"}`, ErrNewer, "skerry/run/v2"},
		{"truncated run", "run.json", `{"schema":"skerry/run/v1","name":"a`, ErrDamaged, "byte 35 of 35"},
		{"wrong types", "run.json", `{"schema":"skerry/run/v1","plan":7}`, ErrDamaged, "plan"},
		{"empty file", "run.json", "", ErrDamaged, "run.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			noError(t, os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o600))
			_, err := Open(dir)
			if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("got %v, want %v with %q", err, c.want, c.says)
			}
		})
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("opening a missing directory: %v", err)
	}
}

func TestDamagedTrialFiles(t *testing.T) {
	w := create(t, 1)
	finish(t, w, 1, Trial{State: TrialOK})
	dir := filepath.Join(w.Dir(), "trials", "1")
	for _, name := range []string{"timeline.parquet", "nodes.parquet", "READ.service.hdr", "events.jsonl", "topology.json"} {
		noError(t, os.WriteFile(filepath.Join(dir, name), []byte("PAR1 #not what it should be\n"), 0o600))
	}
	d := open(t, w.Dir())
	for name, read := range map[string]func() error{
		"timeline":  func() error { _, err := d.Timeline(1); return err },
		"nodes":     func() error { _, err := d.Nodes(1); return err },
		"histogram": func() error { _, err := d.Histogram(1, "READ.service"); return err },
		"events":    func() error { _, err := d.Events(1); return err },
		"topology":  func() error { _, err := d.Topology(1); return err },
	} {
		if err := read(); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v, want ErrDamaged", name, err)
		}
	}
}

func TestTruncatedEventLine(t *testing.T) {
	w := create(t, 1)
	finish(t, w, 1, Trial{State: TrialOK})
	path := filepath.Join(w.Dir(), "trials/1/events.jsonl")
	noError(t, os.WriteFile(path, []byte(`{"t":1,"kind":"a","message":""}`+"\n"+`{"t":2,"ki`), 0o600))
	events, err := open(t, w.Dir()).Events(1)
	check(t, "events", []Event{{T: 1, Kind: "a"}}, events, err)
}

func TestRowsAfterFinish(t *testing.T) {
	w := create(t, 1)
	tw := openTrial(t, w, 1)
	noError(t, tw.Finish(Trial{State: TrialOK}))
	if err := tw.Second(Second{}); err == nil {
		t.Error("a sample after Finish was accepted")
	}
	noError(t, tw.Abandon())
	if len(open(t, w.Dir()).Summary.Trials) != 1 {
		t.Error("Abandon after Finish removed the trial")
	}
}

func TestUnplannedTrial(t *testing.T) {
	if _, err := create(t, 1).OpenTrial(2); !errors.Is(err, ErrNoTrial) {
		t.Errorf("got %v, want ErrNoTrial", err)
	}
}

func TestFileNames(t *testing.T) {
	for in, want := range map[string]string{
		"quickstart": "quickstart", "../../etc/passwd": "etc-passwd", "": "run", "ä b": "b", "a/b\x00c": "a-b-c",
		"...": "run", strings.Repeat("x", 300): strings.Repeat("x", 80),
	} {
		if got := sanitizeName(in); got != want {
			t.Errorf("fileName(%q) = %q, want %q", in, got, want)
		}
	}
}

// A trial's own batches give the interval of its mean if no event happened, and otherwise there is none.
func TestSteady(t *testing.T) {
	quiet := Trial{Interval: 3, Batches: 10}
	if half, ok := quiet.SteadyInterval(); half != 3 || !ok {
		t.Errorf("without events: %v, %t", half, ok)
	}
	cut := quiet
	cut.Events = []EventImpact{{Kind: "link_down"}}
	for name, x := range map[string]Trial{"a cut": cut, "no batches": {Interval: 3}} {
		if half, ok := x.SteadyInterval(); half != 0 || ok {
			t.Errorf("%s: steady, %v", name, half)
		}
	}
}
