package mdtest

import (
	"errors"
	"math"
	"path"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func parse(t *testing.T, name string, records int64, p map[string]string) *Workload {
	t.Helper()
	w, err := Parse(name, records, p)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestParse(t *testing.T) {
	w := parse(t, Namespace, 1000, map[string]string{"files": "50", "shared": "0.25", "home": "all", "page": "10", "listproportion": "1"})
	want := &Workload{Name: Namespace, Records: 1000, Files: 50, Shared: 0.25, Home: All, Page: 10, Mix: production}
	want.Mix.List = 1
	if d := cmp.Diff(want, w); d != "" {
		t.Error(d)
	}
	if sum := parse(t, Namespace, 10, nil).total(); math.Abs(sum-1) > 1e-9 {
		t.Errorf("the proportions sum to %v", sum)
	}
	none := map[string]string{}
	for _, p := range proportions {
		none[p] = "0"
	}
	for name, test := range map[string]struct {
		name    string
		records int64
		p       map[string]string
	}{
		"unknown name": {"a", 10, nil}, "unknown property": {Namespace, 10, map[string]string{"fieldlength": "3"}},
		"no number": {Namespace, 10, map[string]string{"files": "many"}}, "too much": {Namespace, 10, map[string]string{"shared": "1.5"}},
		"not a number": {Namespace, 10, map[string]string{"shared": "NaN"}}, "home": {Namespace, 10, map[string]string{"home": "away"}},
		"a mix of phases": {Phases, 10, map[string]string{"statproportion": "1"}}, "nothing": {Namespace, 10, none},
		"one record, two directories": {Namespace, 1, map[string]string{"shared": "0.5"}},
	} {
		if _, err := Parse(test.name, test.records, test.p); !errors.Is(err, ErrWorkload) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// run is a tree that fails the test on impossible operations.
type run map[string]bool

func (r run) at(op *Op, name string) string {
	top := "own"
	if op.Shared {
		top = "shared"
	}
	return path.Join("/", top, string(rune('a'+op.Area)), op.Dir, name)
}

func (r run) do(t *testing.T, op *Op) {
	t.Helper()
	p := r.at(op, op.Name)
	_, there := r[p]
	if dir := path.Dir(p); op.Parents {
		for ; dir != "/"; dir = path.Dir(dir) {
			r[dir] = true
		}
	} else if op.Name != "" && !r[dir] {
		t.Fatalf("%v of %s, whose directory is not there", op.Kind, p)
	}
	switch op.Kind {
	case Create, Mkdir:
		if there {
			t.Fatalf("%v of %s, which is there", op.Kind, p)
		}
		r[p] = op.Kind == Mkdir
		return
	case Rename:
		to := r.at(op, op.To)
		if _, taken := r[to]; taken {
			t.Fatalf("rename to %s, which exists", to)
		}
		r[to] = r[p]
	}
	if !there {
		t.Fatalf("%v of %s, which is not there", op.Kind, p)
	}
	if op.Kind == Rename || op.Kind == Remove || op.Kind == Rmdir {
		delete(r, p)
	}
}

func TestGeneratedOperationsAreValid(t *testing.T) {
	for name, test := range map[string]struct {
		workload string
		records  int64
		p        map[string]string
		areas    int
	}{
		"phases, own": {Phases, 10, map[string]string{"files": "7"}, 3}, "phases, shared": {Phases, 10,
			map[string]string{"files": "7", "shared": "1"}, 3},
		"phases, both": {Phases, 2, map[string]string{"files": "1", "shared": "0.5", "home": "all"}, 2},
		"mix, own":     {Namespace, 1000, nil, 8}, "mix, everywhere": {Namespace, 1000, map[string]string{"home": "all", "shared": "0.3"}, 8},
		"mix, few directories": {Namespace, 2, map[string]string{"home": "all", "shared": "0.9"}, 8},
		"mix, shared":          {Namespace, 55, map[string]string{"shared": "1"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := parse(t, test.workload, test.records, test.p)
			tree, counts := run{"/": true}, make(map[Kind]float64)
			for n := range test.records {
				tree.do(t, w.Load(n, test.areas))
			}
			const workers, each = 4, 2000
			shared := 0.0
			for worker := range workers {
				g, again := w.NewGenerator(7, worker, test.areas), w.NewGenerator(7, worker, test.areas)
				for i := range each {
					op := g.Next()
					if other := again.Next(); *op != *other {
						t.Fatalf("the same seed gives %+v and %+v", op, other)
					}
					ok := i%100 != 99 // simulates a failure
					if ok || op.Parents {
						tree.do(t, op)
					}
					counts[op.Kind]++
					if op.Shared {
						shared++
					}
					if !op.Shared && w.Home == Near && op.Area != 0 {
						t.Fatalf("a private directory in area %d", op.Area)
					}
					g.Done(ok)
					again.Done(ok)
				}
			}
			for k := range Kinds {
				if (counts[k] > 0) != w.Uses(k) {
					t.Errorf("%v operations of kind %v", counts[k], k)
				}
				if want := workers * each; w.Name == Namespace && k < Rmdir && math.Abs(counts[k]/float64(want)-w.weights()[k]) > 0.03 {
					t.Errorf("%v of %d operations are %v, want a share of %v", counts[k], want, k, w.weights()[k])
				}
			}
			if w.Name == Namespace && math.Abs(shared/(workers*each)-w.Shared) > 0.05 {
				t.Errorf("a share of %v in shared directories, want %v", shared/(workers*each), w.Shared)
			}
		})
	}
}
