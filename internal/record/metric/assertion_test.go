package metric

import (
	"errors"
	"strings"
	"testing"

	"skerry/internal/record"
)

func trial() record.Trial {
	return record.Trial{
		Goodput: 5000, Outcomes: record.Outcomes{OK: 9995, Failed: 5},
		Operations: map[string]record.OperationSummary{"READ": {Count: 10, Response: record.Latency{P95: 250_000}}},
		Traffic:    &record.Traffic{TotalBytes: 12_000_000},
		Audit:      &record.Audit{},
		Events: []record.EventImpact{
			{Name: "leave", Kind: "leave", Recovery: record.Recovery{BaselineOps: 1, RecoverS: 40}},
			{Name: "kill", Kind: "kill", Recovery: record.Recovery{BaselineOps: 1, RecoverS: 90, Censored: true}},
			{Name: "cut", Kind: "cut", Recovery: record.Recovery{BaselineOps: 1, RecoverS: 5}},
			{Name: "cut", Kind: "cut", Recovery: record.Recovery{BaselineOps: 1, RecoverS: 70}},
		},
	}
}

func TestAssertionSyntax(t *testing.T) {
	for text, want := range map[string]bool{
		"read.p95 < 300ms":           true,
		"read.p95<0.2s":              false,
		"  read.p95  <=  250ms ":     true,
		"availability > 99.9%":       true,
		"availability > 0.9996":      false,
		"lost_writes == 0":           true,
		"lost_writes != 0":           false,
		"goodput >= 5000/s":          true,
		"goodput > 5000 ops/s":       false,
		"traffic.total < 12MB":       false,
		"traffic.total <= 12MB":      true,
		"events.leave.recover < 60s": true,
		"events.kill.recover < 1h":   false, // it did not recover during the trial
		"events.kill.recover > 60s":  true,
		"events.kill.recover == 90s": false,
		"events.cut.recover < 60s":   false, // only one of the two did
		"events.cut.recover < 2m":    true,
		"update.p95 < 10s":           false, // no updates
		"events.gone.recover < 10s":  false,
	} {
		l, err := ParseAssertion(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := l.Check(trial()); got.Held != want {
			t.Errorf("%q: held %t with %s", text, got.Held, got.Value)
		}
	}
}

func TestMeasuredValues(t *testing.T) {
	for text, want := range map[string]string{"read.p95 < 1ms": "250 ms", "availability > 99.99%": "99.95 %",
		"events.kill.recover < 1s": "more than 90 s", "update.p95 < 1s": ""} {
		l, err := ParseAssertion(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Check(trial()).Value; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestSyntaxErrorPositions(t *testing.T) {
	for text, want := range map[string]struct {
		offset int
		word   string
	}{
		"read.p95":             {8, "no comparison operator"},
		"read.p95 = 3ms":       {9, "=="},
		"read.p95 ! 3ms":       {9, "not a comparison operator"},
		" < 3ms":               {1, "no metric"},
		"read.p95 <":           {10, "no value to compare"},
		"read.p95 < 300":       {11, "no unit"},
		"read.p95 < 3mbit":     {11, "duration"},
		"  read.p59 < 3ms":     {2, "did you mean"},
		"lost_writes == none":  {15, "not a number"},
		"lost_writes == NaN":   {15, "not a number"},
		"lost_writes < -1":     {14, "not a number"},
		"lost_writes < 1 < 2":  {14, "not a number"},
		"availability > 99.9":  {15, "percent"},
		"goodput > 5k":         {10, "not a number"},
		"goodput => 5":         {8, "=="},
		"events.leave > 3s":    {0, "events.NAME"},
		"traffic.total < 5mbs": {16, "unit"},
	} {
		_, err := ParseAssertion(text)
		var s *SyntaxError
		if !errors.As(err, &s) || s.Offset != want.offset || !strings.Contains(s.Error(), want.word) {
			t.Errorf("%q: %v (at %+v), want %q at %d", text, err, s, want.word, want.offset)
		}
	}
	if _, err := ParseAssertion("nothing < 3"); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"read.p95 < 300ms", "availability > 99.9%", "lost_writes == 0", "events.leave.recover < 60s", "a<", "<=>=",
		"goodput >= 1e3/s", "=", "read.p95 < 1h\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseAssertion(text)
		if err != nil {
			var s *SyntaxError
			if !errors.As(err, &s) || s.Offset < 0 || s.Offset > len(text) || s.Message == "" {
				t.Fatalf("%q: %#v", text, err)
			}
			return
		}
		again, err := ParseAssertion(l.Text)
		if err != nil || again != l {
			t.Fatalf("%q was parsed as %+v, then as %+v, %v", text, l, again, err)
		}
		l.Check(trial())
	})
}
