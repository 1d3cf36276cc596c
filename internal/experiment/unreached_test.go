package experiment

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// withTrace loads an experiment with a trace.
func withTrace(t *testing.T, trace, text string) (Experiment, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "t.csv"), []byte(trace), 0o644); err != nil {
		t.Fatal(err)
	}
	return Parse(filepath.Join(dir, "e.yaml"), []byte(small+text+"\ndrift: {trace: t.csv}"), nil, false)
}

const header = "time_s,from,to,latency_ms,loss\n"

func TestUnreachedTraces(t *testing.T) {
	for name, tt := range map[string]struct{ trace, stop, want string }{
		"the only row": {header + "20,n1,n2,80,0%", "stop: {time: 10s}",
			"t.csv:2:1: first row at 20s is after the end of the trial (stop.time is 10s)"},
		"at the end":         {header + "10,n1,n2,80,0%\n20,n1,n2,90,", "stop: {time: 10s}", "first row at 10s is after the end"},
		"beyond the default": {header + "31,n1,n2,80,0%", "", "first row at 31s is after the end of the trial (stop.time is 30s)"},
		"Unix time stamps": {header + "1453132801.2,n1,n2,80,\n1453132802.2,n1,n2,90,", "stop: {time: 10s}",
			"time 1453132801 s looks like a Unix time stamp"},
		"without stop.time":      {header + "1453132801.2,n1,n2,80,", "stop: {operations: 100}", "looks like a Unix time stamp"},
		"in milliseconds":        {"time_ms,latency_ms\n1453132801213,80", "", "looks like a Unix time stamp"},
		"after a first row at 0": {header + "0,n1,n2,80,\n1453132802.2,n1,n2,90,", "", "t.csv:3:1: time 1453132802 s looks like"},
	} {
		_, err := withTrace(t, tt.trace, tt.stop)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// The client is at n1: its link to n2 follows the rows for n1 and n2.
func TestDriftNotes(t *testing.T) {
	for name, tt := range map[string]struct {
		trace string
		end   time.Duration
		want  []string
	}{
		"reached": {header + "0,n1,n2,80,0%\n9,n1,n2,90,", 10 * time.Second, nil},
		"ended early": {header + "1,n1,n2,80,0%\n9,n1,n2,90,\n12,n1,n2,95,", 8 * time.Second,
			[]string{"2 of 3 rows of the trace t.csv, from 9s on, are not reached: the trial ends after 8s"}},
		"end not known": {header + "1,n1,n2,80,0%\n9,n1,n2,90,", 0, nil},
		"dead until the end": {header + "1,n1,n2,80,0%\n4,n1,n2,,100%\n6,n1,n2,90,", 10 * time.Second,
			[]string{"links n1~n2, client~n2: dead (100% loss) from 4s to the end of the trial"}},
		"recovers too late": {header + "1,,,,100%\n12,,,,0%", 10 * time.Second,
			[]string{"1 of 2 rows", "links n1~n2, n1~n3, n1~n4 and 7 more: dead (100% loss) from 1s"}},
		"recovers": {header + "1,n1,n2,,100%\n4,n1,n2,,1%", 10 * time.Second, nil},
		"dead at 0s": {header + "0,n1,n2,,100%\n4,n1,n2,,1%", 10 * time.Second,
			[]string{"links n1~n2, client~n2: the outage at 0s starts with the measurement"}},
	} {
		e, err := withTrace(t, tt.trace, "stop: {operations: 100}")
		if err != nil {
			t.Fatal(err)
		}
		notes := e.DriftNotes(tt.end)
		ok := len(notes) == len(tt.want)
		for i := range min(len(notes), len(tt.want)) {
			ok = ok && strings.Contains(notes[i], tt.want[i])
		}
		if !ok {
			t.Errorf("%s: %q, want %q", name, notes, tt.want)
		}
	}
}

func TestDriftNotesOfSteps(t *testing.T) {
	e := parse(t, small+`
stop: {operations: 100}
drift: {steps: [{at: 2s, links: [{between: [n1, n2], loss: 100%}]}, {at: 20s, scale: 2}]}
`)
	want := []string{"1 of 2 steps of the drift, from 20s on, are not reached: the trial ends after 10s",
		"links n1~n2, client~n2: dead (100% loss) from 2s to the end of the trial"}
	if got := e.DriftNotes(10 * time.Second); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q, want %q", got, want)
	}
}

// An outage at 0s begins with the measurement, because no database can be set up over a dead link.
func TestOutageDuringSetup(t *testing.T) {
	e, err := withTrace(t, header+"0,n1,n2,80,100%\n4,n1,n2,,1%", "")
	if err != nil {
		t.Fatal(err)
	}
	cloud, err := e.Cloud()
	if err != nil {
		t.Fatal(err)
	}
	profiles, err := e.LinkProfiles(cloud)
	if err != nil || len(profiles) != 2 {
		t.Fatal(profiles, err)
	}
	p := profiles[0]
	if ab, _ := p.BeforeMeasurement(); ab.Loss != 0 || ab.Latency != 80*ms {
		t.Errorf("before the measurement: %+v", ab)
	}
	if p.AB.At(0).Loss != 1 {
		t.Errorf("at 0s: %+v", p.AB.At(0))
	}
}

// Traces in the formats of other programs, with the result for each.
func TestTraceCorpus(t *testing.T) {
	for file, tt := range map[string]struct {
		stop, refused string
		notes         []string
	}{
		"lte-drive.csv": {stop: "stop: {time: 60s}"},
		"satellite-handover.csv": {stop: "stop: {time: 30s}", notes: []string{
			"8 of 16 rows of the trace satellite-handover.csv, from 30s on, are not reached", "links n1~n2, client~n2: the outage at 0s starts " +
				"with the measurement"}},
		"cellular-unix-time.csv": {stop: "stop: {time: 20s}", refused: "time 1453132801 s looks like a Unix time stamp"},
		"ship-leaves-port.csv":   {stop: "stop: {time: 45s}", notes: []string{"dead (100% loss) from 30s to the end of the trial"}},
	} {
		path := filepath.Join("..", "..", "test", "corpus", "traces", "e.yaml") // the file does not have to exist
		e, err := Parse(path, []byte(small+tt.stop+"\ndrift: {trace: "+file+"}"), nil, false)
		if tt.refused != "" {
			if err == nil || !strings.Contains(err.Error(), tt.refused) {
				t.Errorf("%s: %v, want %q", file, err, tt.refused)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		notes := e.allDriftNotes()
		ok := len(notes) == len(tt.notes)
		for i := range min(len(notes), len(tt.notes)) {
			ok = ok && strings.Contains(notes[i], tt.notes[i])
		}
		if !ok {
			t.Errorf("%s: %q, want %q", file, notes, tt.notes)
		}
	}
}
