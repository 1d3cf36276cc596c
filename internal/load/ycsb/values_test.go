package ycsb

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Results of YCSB's buildDeterministicValue on a JVM.
func TestDeterministicValues(t *testing.T) {
	const key = "user6284781860667377211"
	for field, want := range map[string]string{
		"field0": "user6284781860667377211:field0:-56807877:2032869390:-165488160:1762371712:-169193395:-1039977118:-10",
		"field9": "user6284781860667377211:field9:-56807598:-1100440855:1189962510:701512652:-166179663:2032990533:2915",
	} {
		if got := string(appendValue(nil, key, field, 100)); got != want {
			t.Errorf("%s:\n%s, want\n%s", field, got, want)
		}
		if got := string(appendValue(nil, key, field, 10)); got != want[:10] {
			t.Errorf("%s cut to 10: %s", field, got)
		}
	}
}

func TestVerify(t *testing.T) {
	w := builtin(t, "c", Properties{"dataintegrity": "true", "fieldcount": "2"})
	g := NewSource(w, 1).NewGenerator()
	op := g.Next(0)
	good := func() []Field {
		return []Field{
			{"field0", appendValue(nil, op.Key, "field0", 100)},
			{"field1", appendValue(nil, op.Key, "field1", 100)},
		}
	}
	flipped := good()
	flipped[1].Value[99] ^= 1
	for _, c := range []struct {
		name   string
		fields []Field
		want   Verification
	}{
		{"as written", good(), Verified},
		{"no record", nil, Missing},
		{"a field missing", good()[:1], Wrong},
		{"a bit flipped", flipped, Wrong},
		{"fields swapped", []Field{{"field0", good()[1].Value}, {"field1", good()[0].Value}}, Wrong},
	} {
		if got := g.Verify(op, c.fields); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if written := g.Load(3); g.Verify(written, written.Values) != Verified {
		t.Error("a value written by the load phase does not verify")
	}
}

func TestFieldLengths(t *testing.T) {
	hist := filepath.Join(t.TempDir(), "hist.txt")
	if err := os.WriteFile(hist, []byte("BlockSize\t50\n0\t1\n2\t3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		p        Properties
		min, max int
		mean     float64
	}{
		{Properties{}, 100, 100, 100},
		{Properties{"fieldlength": "13"}, 13, 13, 13},
		{Properties{"fieldlengthdistribution": "uniform", "minfieldlength": "11", "fieldlength": "20"}, 11, 20, 15.5},
		{Properties{"fieldlengthdistribution": "zipfian", "minfieldlength": "5", "fieldlength": "104"}, 5, 104, 5 + zipfMean(100)},
		{Properties{"fieldlengthdistribution": "histogram", "fieldlengthhistogram": hist}, 50, 150, 125},
	} {
		g := NewSource(parse(t, c.p), 4).NewGenerator()
		low, high, sum, n := math.MaxInt, 0, 0, 0
		for i := range uint64(5000) {
			for _, f := range g.Load(i).Values {
				low, high = min(low, len(f.Value)), max(high, len(f.Value))
				sum += len(f.Value)
				n++
				for _, b := range f.Value {
					if b < ' ' || b > '_' {
						t.Fatalf("%v: byte %q in a value", c.p, b)
					}
				}
			}
		}
		if mean := float64(sum) / float64(n); low != c.min || high != c.max || math.Abs(mean-c.mean) > 0.02*c.mean {
			t.Errorf("%v: lengths %d to %d, mean %.1f; want %d to %d, %.1f", c.p, low, high, mean, c.min, c.max, c.mean)
		}
	}
}

func zipfMean(items int64) float64 {
	mean := 0.0
	for k, p := range zipfProbabilities(newZipfian(items)) {
		mean += float64(k) * p
	}
	return mean
}

// Values of one operation do not overlap, whatever their lengths.
func TestValuesAreDistinct(t *testing.T) {
	g := NewSource(parse(t, Properties{"fieldlengthdistribution": "uniform", "fieldlength": "5000"}), 4).NewGenerator()
	for i := range uint64(100) {
		op := g.Load(i)
		for k, f := range op.Values {
			copyOf := string(f.Value)
			for j := range op.Values {
				if j != k {
					for b := range op.Values[j].Value {
						op.Values[j].Value[b] = '~'
					}
				}
			}
			if string(f.Value) != copyOf {
				t.Fatalf("value %d of insert %d shares memory with another", k, i)
			}
			op = g.Load(i)
		}
	}
}

func TestParseLengths(t *testing.T) {
	for _, text := range []string{
		"", "BlockSize", "BlockSize\t0\n1\t1", "Block\t5\n1\t1", "BlockSize\t5\n", "BlockSize\t5\n1\t0",
		"BlockSize\t5\nx\t1", "BlockSize\t5\n-1\t1", "BlockSize\t5\n99999999\t1", "BlockSize\t5\n1\t-1", "BlockSize\t5\n1 1",
	} {
		if l, err := parseLengths(text); err == nil {
			t.Errorf("%q was parsed as %+v, want an error", text, l)
		}
	}
}

func TestGoldenKeys(t *testing.T) {
	// YCSB's keys of the numbers 0 to 5.
	want := []string{
		"user6284781860667377211", "user8517097267634966620", "user1820151046732198393",
		"user4052466453699787802", "user3232700585171816769", "user1000385178204227360",
	}
	w := Workload{ZeroPadding: 1}
	var got []string
	var arena keyArena
	for n := range int64(6) {
		if a, b := w.Key(n), arena.key(&w, n); a != b {
			t.Errorf("key %d is %s, in the arena %s", n, a, b)
		}
		got = append(got, w.Key(n))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestKeyFormat(t *testing.T) {
	for _, c := range []struct {
		w    Workload
		n    int64
		want string
	}{
		{Workload{OrderedKeys: true}, 7, "user7"},
		{Workload{OrderedKeys: true, ZeroPadding: 1}, 42, "user42"},
		{Workload{OrderedKeys: true, ZeroPadding: 8}, 5, "user00000005"},
		{Workload{OrderedKeys: true, ZeroPadding: 2}, 12345, "user12345"},
		{Workload{ZeroPadding: 22}, 0, "user0006284781860667377211"},
	} {
		if got := c.w.Key(c.n); got != c.want {
			t.Errorf("key %d with %d digits: %s, want %s", c.n, c.w.ZeroPadding, got, c.want)
		}
	}
}

// Keys do not change when the arena starts its next block.
func TestArenaKeepsKeys(t *testing.T) {
	w := Workload{ZeroPadding: 1}
	var arena keyArena
	const n = 5000 // several blocks
	keys := make([]string, n)
	for i := range keys {
		keys[i] = arena.key(&w, int64(i))
	}
	for i, k := range keys {
		if want := w.Key(int64(i)); k != want {
			t.Fatalf("key %d became %q, want %q", i, k, want)
		}
	}
}
