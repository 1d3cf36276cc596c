package hydrabench

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// The lab of the benchmark is the topology that is given to people.
func TestPlaces(t *testing.T) {
	file, err := os.ReadFile("../../../topologies/two-clouds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(file)) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	if got := strings.Join(lines, ""); got != places {
		t.Errorf("topologies/two-clouds.yaml is\n%s\nand the benchmark's\n%s", got, places)
	}
}

func TestJudge(t *testing.T) {
	lost := time.Unix(100, 0)
	at := func(begin, end float64, ok bool) try {
		return try{int64(begin * 1e9), int64(end * 1e9), ok}
	}
	tests := []struct {
		name   string
		seen   []try
		after  float64
		failed int
		err    bool
	}{
		{"a write that was under way does not count", []try{at(99, 99.5, true), at(99.9, 100.1, true), at(100.2, 102, true)}, 2, 0, false},
		{"the first to end counts", []try{at(99, 99.5, true), at(100.1, 104, true), at(101, 103, true)}, 3, 0, false},
		{"failures do not", []try{at(99, 99.5, true), at(100.1, 101, false), at(101, 103, true)}, 3, 1, false},
		{"nothing before", []try{at(101, 103, true)}, 3, 0, true},
		{"nothing after", []try{at(99, 99.5, true), at(101, 103, false)}, -1, 1, true},
	}
	for _, tt := range tests {
		l, err := judge(tt.seen, lost)
		if d := l.Seconds - tt.after; d > 1e-6 || d < -1e-6 || l.Failed != tt.failed || (err != nil) != tt.err {
			t.Errorf("%s: %+v, %v", tt.name, l, err)
		}
	}
}

func TestDrive(t *testing.T) {
	var writes, reads atomic.Int64
	both, done := context.WithCancel(t.Context())
	defer done()
	o := operations{
		write: func(_ context.Context, _ string, value []byte) error {
			if len(value) != payload || !json.Valid(value) {
				t.Errorf("value %q", value)
			}
			if writes.Add(1)%10 == 0 {
				return io.ErrUnexpectedEOF
			}
			return nil
		},
		read: func(context.Context, string) error {
			if reads.Add(1) > 10 && writes.Load() > 10 {
				done()
			}
			return nil
		},
	}
	a := drive(both, job{System: systemHydra, Op: opMix, Workers: 4, Seconds: 60, Keys: 10, Payload: payload}, o)
	l := a.Load
	if l.OK+l.Failed != writes.Load()+reads.Load() || reads.Load() == 0 || l.Rate <= 0 || l.P50 > l.Max {
		t.Errorf("%+v with %d writes and %d reads", l, writes.Load(), reads.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a := drive(ctx, job{Op: opWatch, Workers: 1, Keys: 1}, o); len(a.Seen) != 0 {
		t.Errorf("it went on after its end: %+v", a)
	}
}

func TestServe(t *testing.T) {
	for _, text := range []string{"", "nonsense\n", `{"system":"hydra","op":"write","endpoints":["nowhere"],"workers":1,"seconds":1}` + "\n"} {
		var out strings.Builder
		if err := Serve(t.Context(), strings.NewReader(text), &out); err != nil {
			t.Fatal(err)
		}
		var a answer
		if err := json.Unmarshal([]byte(out.String()), &a); err != nil || a.Error == "" {
			t.Errorf("%q: %s", text, out.String())
		}
	}
}

func TestTable(t *testing.T) {
	load := func(system, op string, workers int, rate float64) Load {
		return Load{System: system, Op: op, Workers: workers, Rate: rate, P50: rate / 100}
	}
	r := Result{Scenes: []Scene{{
		Scale: 1, Majority: 20, Fsync: 1,
		Loads: []Load{
			load(systemHydra, opWrite, 1, 2300), load(systemHydra, opWrite, 240, 4000), load(systemDirect, opWrite, 240, 5000), load(systemEtcd, opWrite, 240, 2000), load(systemEtcd5, opWrite, 1, 4600),
			load(systemHydra, opRead, 240, 40000), load(systemDirect, opRead, 240, 60000),
			{System: systemHydra, Op: opApply, At: "gcp-2", Workers: 1, P50: 26.5}, {System: systemHydra, Op: opApply, At: "aws-1", Workers: 1, P50: 0.5},
		},
		Leader: []Loss{{Seconds: 2, Election: 1000}}, Cloud: []Loss{{Seconds: 6}},
		Rebuild: &Rebuild{Rows: 1_000_000, Seconds: 50}, Log: &Log{Bound: 100, Largest: 101},
	}}}
	r.Table = table(r.Scenes)
	var got []string
	for _, f := range r.Table {
		word := "no"
		if f.Reached {
			word = "yes"
		}
		got = append(got, word)
	}
	if want := "yes yes no yes yes no yes no yes no yes no"; strings.Join(got, " ") != want {
		t.Errorf("reached: %v, want %s\n%+v", got, want, r.Table)
	}
	var b strings.Builder
	if err := r.Text(&b); err != nil || !strings.Contains(b.String(), "2.00x (etcd 2000/s") || !strings.Contains(b.String(), "0.50x (etcd: median 46.00 ms") || !strings.Contains(b.String(), "[0.50 to 26.50, n=2], the slowest gcp-2") || !strings.Contains(b.String(), "apply gcp-2") {
		t.Errorf("%v: %s", err, b.String())
	}
}

// The table has the median, and says how far measurements are apart.
func TestSpread(t *testing.T) {
	load := func(rate float64) Load {
		return Load{System: systemHydra, Op: opWrite, Workers: 240, Rate: rate, Failed: 1}
	}
	f := table([]Scene{{Loads: []Load{load(5000), load(1000), load(4000)}, Leader: []Loss{{Seconds: 0.2, Election: 100}, {Seconds: 0.4, Election: 100}}}})
	if got := f[0].Measured; !strings.HasPrefix(got, "4000/s [1000 to 5000, n=3]") || !strings.HasSuffix(got, "3 failed") {
		t.Errorf("writes: %s", got)
	}
	if got := f[1]; got.Reached || !strings.HasPrefix(got.Measured, "median 0.30 s [0.20 to 0.40, n=2]") {
		t.Errorf("a leader's loss of which one took too long: %+v", got)
	}
}

func TestUnknownPart(t *testing.T) {
	if _, err := Run(t.Context(), Options{Only: []string{"writes"}}); !errors.Is(err, ErrPart) {
		t.Errorf("error %v", err)
	}
}
