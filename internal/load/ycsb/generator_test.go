package ycsb

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// builtin is a core workload with changes.
func builtin(t testing.TB, name string, changes Properties) Workload {
	t.Helper()
	p, ok := Builtin(name)
	if !ok {
		t.Fatalf("no workload %s", name)
	}
	return parse(t, p.Merge(changes))
}

func TestMixOfBuiltins(t *testing.T) {
	const n = 100_000
	for name, want := range map[string]map[Kind]float64{
		"a": {Read: 0.5, Update: 0.5},
		"b": {Read: 0.95, Update: 0.05},
		"c": {Read: 1},
		"d": {Read: 0.95, Insert: 0.05},
		"e": {Scan: 0.95, Insert: 0.05},
		"f": {Read: 0.5, ReadModifyWrite: 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewSource(builtin(t, name, nil), 3).NewGenerator()
			got := map[Kind]int{}
			for i := range uint64(n) {
				got[g.Kind(i)]++
			}
			for k := range Kinds {
				// Five standard deviations of a binomial distribution.
				p := want[k]
				if d := math.Abs(float64(got[k]) - n*p); d > 5*math.Sqrt(n*p*(1-p)) {
					t.Errorf("%d of %d operations are %v, want %v", got[k], n, k, n*p)
				}
			}
		})
	}
}

// The keys that YCSB 0.17.0 reads most in workload C with 1000 records, measured with its BasicDB:
// 3.9 % and 1.95 % of 50,000 reads.
func TestHottestKeysMatchYCSB(t *testing.T) {
	g := NewSource(builtin(t, "c", nil), 5).NewGenerator()
	got := map[string]int{}
	const n = 100_000
	for i := range uint64(n) {
		got[g.Next(i).Key]++
	}
	for key, share := range map[string]float64{"user1573987489603120213": 0.0386, "user5817347222824138717": 0.0195} {
		if s := float64(got[key]) / n; math.Abs(s-share) > 0.003 {
			t.Errorf("%s gets %.2f %% of the reads, want %.2f %%", key, 100*s, 100*share)
		}
	}
}

// The n-th operation depends on the seed only, not on the generator or the order.
func TestOperationsAreReproducible(t *testing.T) {
	w := builtin(t, "a", Properties{"writeallfields": "true"})
	describe := func(op *Op) string {
		var b strings.Builder
		b.WriteString(op.Kind.String() + op.Key)
		for _, f := range op.Values {
			b.WriteString(f.Name)
			b.Write(f.Value)
		}
		return b.String()
	}
	const n = 200
	var want []string
	g := NewSource(w, 9).NewGenerator()
	for i := range uint64(n) {
		want = append(want, describe(g.Next(i)))
	}
	s := NewSource(w, 9)
	workers := []*Generator{s.NewGenerator(), s.NewGenerator(), s.NewGenerator()}
	order := rand.New(rand.NewPCG(1, 2)).Perm(n)
	got := make([]string, n)
	for _, i := range order {
		got[i] = describe(workers[i%3].Next(uint64(i)))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if other := describe(NewSource(w, 10).NewGenerator().Next(0)); other == want[0] {
		t.Error("another seed makes the same operation")
	}
}

func TestWorkloadEScans(t *testing.T) {
	g := NewSource(builtin(t, "e", nil), 1).NewGenerator()
	seen := map[int]int{}
	scans := 0
	for i := range uint64(50_000) {
		op := g.Next(i)
		switch op.Kind {
		case Insert:
			g.source.Inserts().Complete(op.Number, true)
		case Scan:
			scans++
			seen[op.Length]++
		}
	}
	want := float64(scans) / 100
	for n := 1; n <= 100; n++ {
		if math.Abs(float64(seen[n])-want) > 6*math.Sqrt(want) {
			t.Errorf("%d of %d scans have length %d, want about %.0f", seen[n], scans, n, want)
		}
	}
	if len(seen) != 100 {
		t.Errorf("scans of %d different lengths, want 1 to 100", len(seen))
	}
}

// Workloads D and E insert from recordcount on, without gaps, and read acknowledged records only.
func TestInsertSequence(t *testing.T) {
	for _, name := range []string{"d", "e"} {
		t.Run(name, func(t *testing.T) {
			w := builtin(t, name, nil)
			s := NewSource(w, 2)
			g := s.NewGenerator()
			var open []int64 // assigned, not yet complete
			next := w.RecordCount
			r := rand.New(rand.NewPCG(3, 4))
			top := int64(0)
			for i := range uint64(40_000) {
				op := g.Next(i)
				if op.Kind == Insert {
					if op.Number != next || op.Key != w.Key(next) || len(op.Values) != 10 {
						t.Fatalf("insert %d is number %d, key %s with %d fields; want number %d", i, op.Number, op.Key, len(op.Values), next)
					}
					next++
					open = append(open, op.Number)
				} else {
					top = max(top, op.Number)
					if len(open) > 0 && op.Number >= slices.Min(open) {
						t.Fatalf("operation %d chose record %d, but %d is not acknowledged yet", i, op.Number, slices.Min(open))
					}
				}
				for len(open) > 8 { // acknowledged out of order
					k := r.IntN(len(open))
					s.Inserts().Complete(open[k], true)
					open = slices.Delete(open, k, k+1)
				}
			}
			if top < w.RecordCount {
				t.Errorf("no operation chose any of %d inserted records", next-w.RecordCount)
			}
		})
	}
}

func TestInsertsWindow(t *testing.T) {
	c := newInserts(10)
	if c.Last() != 9 || !c.readable(9) || c.readable(10) {
		t.Fatalf("before any insert: last %d", c.Last())
	}
	for want := int64(10); want < 15; want++ {
		if n := c.Next(); n != want {
			t.Fatalf("got number %d, want %d", n, want)
		}
	}
	for _, step := range []struct {
		n     int64
		there bool
		last  int64
	}{{12, true, 9}, {11, false, 9}, {10, true, 12}, {14, true, 12}, {13, true, 14}} {
		c.Complete(step.n, step.there)
		if c.Last() != step.last {
			t.Errorf("after insert %d completed: last %d, want %d", step.n, c.Last(), step.last)
		}
	}
	for n, want := range map[int64]bool{10: true, 11: false, 12: true, 14: true, 15: false} {
		if c.readable(n) != want {
			t.Errorf("record %d readable: %v, want %v", n, !want, want)
		}
	}
}

func TestLoadInsertsEveryRecordOnce(t *testing.T) {
	w := parse(t, Properties{"recordcount": "50", "insertstart": "20"})
	g := NewSource(w, 1).NewGenerator()
	for n := range uint64(w.InsertCount) {
		op := g.Load(n)
		if want := int64(20 + n); op.Number != want || op.Key != w.Key(want) || op.Kind != Insert || len(op.Values) != 10 {
			t.Fatalf("insert %d: %v number %d", n, op.Kind, op.Number)
		}
	}
	if w.InsertCount != 30 {
		t.Errorf("insertcount %d, want 30", w.InsertCount)
	}
}

func TestFieldsReadAndWritten(t *testing.T) {
	for _, c := range []struct {
		p           Properties
		read, write int
	}{
		{Properties{}, 0, 1},
		{Properties{"readallfields": "false"}, 1, 1},
		{Properties{"readallfieldsbyname": "true", "writeallfields": "true"}, 10, 10},
		{Properties{"dataintegrity": "true", "fieldcount": "3"}, 3, 1},
	} {
		g := NewSource(builtin(t, "a", c.p), 1).NewGenerator()
		for i := range uint64(50) {
			op := g.Next(i)
			if op.Kind == Read && len(op.Fields) != c.read || op.Kind == Update && len(op.Values) != c.write {
				t.Errorf("%v: %v reads %d and writes %d fields", c.p, op.Kind, len(op.Fields), len(op.Values))
			}
		}
	}
}

func BenchmarkNext(b *testing.B) {
	for _, name := range BuiltinNames() {
		b.Run(name, func(b *testing.B) {
			g := NewSource(builtin(b, name, nil), 1).NewGenerator()
			b.ReportAllocs()
			for i := range uint64(b.N) {
				if op := g.Next(i); op.Kind == Insert {
					g.source.Inserts().Complete(op.Number, true)
				}
			}
		})
	}
}

// TestDelete compares every operation on a small table, with deletes and inserts, with its content.
func TestDelete(t *testing.T) {
	w, _, err := Parse(Properties{"recordcount": "20", "readproportion": "0.2", "updateproportion": "0",
		"deleteproportion": "0.5", "insertproportion": "0.3"})
	if err != nil {
		t.Fatal(err)
	}
	there := map[int64]bool{}
	for n := range int64(20) {
		there[n] = true
	}
	s := NewSource(w, 1)
	g := s.NewGenerator()
	deletes, again := 0, 0
	for n := range uint64(5000) {
		op := g.Next(n)
		switch op.Kind {
		case Delete:
			if !there[op.Number] {
				t.Fatalf("operation %d deletes record %d, which does not exist", n, op.Number)
			}
			delete(there, op.Number)
			s.Inserts().CompleteRemove(op.Number, true, false)
			deletes++
		case Insert:
			if there[op.Number] {
				t.Fatalf("operation %d inserts record %d, which exists", n, op.Number)
			}
			if op.Number < 20 {
				again++
			}
			there[op.Number] = true
			s.Inserts().Complete(op.Number, true)
		case Read:
			if !there[op.Number] {
				t.Fatalf("operation %d reads record %d, which does not exist", n, op.Number)
			}
		}
		if len(there) < 10 {
			t.Fatalf("after operation %d only %d of 20 records remain", n, len(there))
		}
	}
	if deletes < 1000 || again < 1000 {
		t.Errorf("%d deletes, %d records inserted again, of 5000 operations", deletes, again)
	}
}

// TestCompleteRemove checks which records requests may choose after a failed delete, and after one
// in doubt.
func TestCompleteRemove(t *testing.T) {
	c := newInserts(3)
	c.Remove(1)
	c.Remove(2)
	if c.Remove(1) || c.readable(1) || c.readable(2) {
		t.Error("a record with a pending delete can be chosen")
	}
	c.CompleteRemove(1, false, false)
	c.CompleteRemove(2, false, true)
	if !c.readable(1) || c.readable(2) {
		t.Errorf("record can be chosen after a failed delete: %t, want true; after a delete in doubt: %t, want false",
			c.readable(1), c.readable(2))
	}
	if n := c.Next(); n != 3 {
		t.Errorf("the next insert is of record %d, want 3: no record is known to be deleted", n)
	}
}
