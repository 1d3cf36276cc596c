package database

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var errBad = errors.New("invalid option of test")

type values struct {
	N     int
	B     bool
	D     time.Duration
	Bytes int64
	C     string
	List  []string
}

func TestOptions(t *testing.T) {
	missing := values{N: 7, B: true, D: time.Second, Bytes: 1, C: "a"}
	with := func(f func(*values)) values { v := missing; f(&v); return v }
	for _, test := range []struct {
		given map[string]any
		want  values
		err   string
	}{
		{want: missing},
		{given: map[string]any{"number": 8.0}, want: with(func(v *values) { v.N = 8 })},
		{given: map[string]any{"number": uint64(9)}, want: with(func(v *values) { v.N = 9 })},
		{given: map[string]any{"truth": "no"}, want: with(func(v *values) { v.B = false })},
		{given: map[string]any{"truth": false}, want: with(func(v *values) { v.B = false })},
		{given: map[string]any{"time": "250ms"}, want: with(func(v *values) { v.D = 250 * time.Millisecond })},
		{given: map[string]any{"size": "2MiB"}, want: with(func(v *values) { v.Bytes = 2 << 20 })},
		{given: map[string]any{"choice": "b"}, want: with(func(v *values) { v.C = "b" })},
		{given: map[string]any{"list": "x, y,,"}, want: with(func(v *values) { v.List = []string{"x", "y"} })},
		{given: map[string]any{"numbre": 8}, err: "did you mean number?"},
		{given: map[string]any{"something": 8}, err: "known: choice, list, number"},
		{given: map[string]any{"number": 0}, err: "number: \"0\" is not a whole number from 1 to 10"},
		{given: map[string]any{"number": 2.5}, err: "a whole number"},
		{given: map[string]any{"truth": "perhaps"}, err: "true or false"},
		{given: map[string]any{"time": 5}, err: "a time with its unit"},
		{given: map[string]any{"size": "much"}, err: "an amount"},
		{given: map[string]any{"choice": "z"}, err: "one of a, b"},
	} {
		r := ReadOptions(errBad, test.given, "number", "truth", "time", "size", "choice", "list")
		got := values{
			N: r.Int("number", 1, 10, 7), B: r.Bool("truth", true), D: r.Duration("time", time.Second),
			Bytes: r.Bytes("size", 1), C: r.Choice("choice", "a", "a", "b"), List: r.List("list"),
		}
		if test.err != "" {
			if err := r.Err(); !errors.Is(err, errBad) || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%v: error %v, want %q", test.given, err, test.err)
			}
			continue
		}
		if r.Err() != nil {
			t.Errorf("%v: %v", test.given, r.Err())
		}
		if d := cmp.Diff(test.want, got); d != "" {
			t.Errorf("%v: %s", test.given, d)
		}
	}
}

func TestProperties(t *testing.T) {
	for _, test := range []struct {
		given map[string]string
		want  []string
		err   string
	}{
		{given: map[string]string{"x.hosts": "a:1, b"}, want: []string{"a:1", "b:9"}},
		{given: map[string]string{"x.hosts": "a", "fieldcount": "3"}, want: []string{"a:9"}},
		{given: map[string]string{"x.hosts": "::1"}, want: []string{"[::1]:9"}},
		{given: map[string]string{}, err: "x.hosts is missing"},
		{given: map[string]string{"x.hosts": " "}, err: "x.hosts is missing"},
		{given: map[string]string{"x.hosts": "a:zero"}, err: "a list of host:port"},
		{given: map[string]string{"x.hosts": "a:0"}, err: "a list of host:port"},
		{given: map[string]string{"x.host": "a"}, err: "did you mean x.hosts?"},
	} {
		r := ReadProperties(errBad, "x.", test.given, "x.hosts")
		got := r.Addresses("x.hosts", 9)
		if test.err != "" {
			if err := r.Err(); !errors.Is(err, errBad) || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%v: error %v, want %q", test.given, err, test.err)
			}
			continue
		}
		if d := cmp.Diff(test.want, got); d != "" || r.Err() != nil {
			t.Errorf("%v: %v %s", test.given, r.Err(), d)
		}
	}
}
