package load

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/load/mdtest"
	"skerry/internal/load/ycsb"
)

// forest counts what is done to a tree.
type forest struct {
	Client
	done    *[mdtest.Kinds]atomic.Int64
	planted *atomic.Int64
	delay   time.Duration
}

func (f forest) Areas() int { return 3 }

func (f forest) Tree(_ context.Context, op *mdtest.Op) error {
	if op.Parents && op.Kind == mdtest.Create {
		f.planted.Add(1)
		return nil
	}
	time.Sleep(f.delay)
	if f.done[op.Kind].Add(1)%10 == 0 {
		return Failed("exists", "", errors.New("file exists"))
	}
	return nil
}

func (f forest) Close() error { return nil }

func TestTree(t *testing.T) {
	w := workload(t, "a", ycsb.Properties{"recordcount": "50", "operationcount": "50"})
	tree, err := mdtest.Parse(mdtest.Namespace, 50, map[string]string{"shared": "0.5", "files": "10"})
	if err != nil {
		t.Fatal(err)
	}
	var done [mdtest.Kinds]atomic.Int64
	var planted atomic.Int64
	open := func(delay time.Duration) OpenClient {
		return func(context.Context) (Client, error) {
			return forest{done: &done, planted: &planted, delay: delay}, nil
		}
	}
	if r, err := Run(t.Context(), Spec{Phase: PhaseLoad, Workload: w, Tree: tree, Threads: 3}, open(0), nil); err != nil ||
		planted.Load() != 50 || r.Operations["INSERT"].OK != 50 {
		t.Fatalf("%d files of 50 were loaded: %+v, %v", planted.Load(), r.Operations, err)
	}
	r, err := Run(t.Context(), Spec{Workload: w, Tree: tree, Threads: 4, Operations: 2000, Seed: 5}, open(0), nil)
	if err != nil || r.Ended() != 2000 {
		t.Fatalf("%d operations of 2000 ended, %v", r.Ended(), err)
	}
	for k := range mdtest.Kinds {
		n, o := done[k].Load(), r.Operations[k.String()]
		if n == 0 && o == nil {
			continue
		}
		if o == nil || o.OK+o.Failed != n || o.Failed != n/10 || o.Latency.Service.Count() != o.OK {
			t.Errorf("%v was done %d times: %+v", k, n, o)
		}
	}
	slow, err := Run(t.Context(), Spec{Workload: w, Tree: tree, Arrival: Constant, Target: 1000, MaxInFlight: 1,
		Duration: 100 * time.Millisecond}, open(20*time.Millisecond), nil)
	if err != nil || slow.Dropped == 0 {
		t.Errorf("%d operations were dropped where there was no room for them, %v", slow.Dropped, err)
	}
	m := newMemory()
	if _, err := Run(t.Context(), Spec{Workload: w, Tree: tree, Operations: 1}, m.open, nil); !errors.Is(err, errSpec) {
		t.Errorf("a database that is not a tree: %v", err)
	}
}

// grove is a tree in memory that acknowledges everything, but loses one created file and keeps one
// removed file. Other changes it leaves in doubt.
type grove struct {
	Client
	*garden
}

type garden struct {
	mu               sync.Mutex
	there            map[mdtest.Entry]bool
	lost, kept, late mdtest.Entry
	created, removed int
	looks            int // number of checks for the late file
}

func (g grove) Areas() int   { return 2 }
func (g grove) Close() error { return nil }

func (g grove) Tree(_ context.Context, op *mdtest.Op) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := mdtest.Entry{Shared: op.Shared, Area: op.Area, Dir: op.Dir, Name: op.Name}
	switch op.Kind {
	case mdtest.Stat:
		if e == g.late && g.looks < 2 {
			g.looks++
			return ErrNotFound
		}
		if !g.there[e] {
			return ErrNotFound
		}
	case mdtest.Create, mdtest.Mkdir:
		if op.Parents && op.Kind == mdtest.Create {
			break
		}
		g.created++
		switch {
		case g.created >= 5 && g.lost == (mdtest.Entry{}) && op.Kind == mdtest.Create:
			g.lost = e
			return nil
		case g.created%7 == 0:
			g.there[e] = g.created%2 == 0
			return Unknown("timeout", "", errors.New("no answer"))
		}
	case mdtest.Rename:
		delete(g.there, e)
		e.Name = op.To
	case mdtest.Remove, mdtest.Rmdir:
		if e == g.lost {
			return Failed("busy", "", errors.New("file is open"))
		}
		if g.removed++; g.removed == 3 {
			g.kept = e
			return nil
		}
		delete(g.there, e)
		return nil
	}
	g.there[e] = true
	return nil
}

// TestAuditTree finds the lost and the kept file, and no other fault.
func TestAuditTree(t *testing.T) {
	w := workload(t, "a", ycsb.Properties{"recordcount": "20", "operationcount": "20"})
	tree, err := mdtest.Parse(mdtest.Namespace, 20, map[string]string{
		"files": "10", "shared": "0.5", "listproportion": "0", "statproportion": "0", "createproportion": "1",
		"mkdirproportion": "0", "renameproportion": "0", "removeproportion": "0.2",
	})
	if err != nil {
		t.Fatal(err)
	}
	g := &garden{there: make(map[mdtest.Entry]bool)}
	open := func(context.Context) (Client, error) { return grove{garden: g}, nil }
	spec := Spec{Phase: PhaseLoad, Workload: w, Tree: tree, Threads: 2, Seed: 4}
	if _, err := Run(t.Context(), spec, open, nil); err != nil {
		t.Fatal(err)
	}
	for e := range g.there { // a loaded file, missing in the first two checks
		g.late = e
		break
	}
	spec.Phase, spec.Operations = PhaseRun, 300
	spec.Audit = &AuditSpec{File: filepath.Join(t.TempDir(), "claims"), Settle: time.Minute / 2}
	r, err := Run(t.Context(), spec, open, nil)
	if err != nil || r.Audited == nil || r.Audited.Acknowledged+r.Audited.InDoubt+r.Audited.Refused != 300 || r.Audited.InDoubt == 0 {
		t.Fatalf("%+v, %v", r.Audited, err)
	}
	spec.Phase = PhaseAudit
	spec.Audit.Settle = time.Second
	if g.lost == (mdtest.Entry{}) || g.kept == (mdtest.Entry{}) {
		t.Fatal("no file was lost or no removed file was kept")
	}
	got, err := Run(t.Context(), spec, open, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{g.lost.String(): "lost", g.kept.String(): "unexpected"}
	found := make(map[string]string)
	for _, f := range got.Audit.Findings {
		found[f.Key] = f.Kind
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
	a := got.Audit
	if a.Lost != 1 || a.Unexpected != 1 || a.Stale != 1 || a.Unread != 0 || a.Acknowledged != r.Audited.Acknowledged || a.Keys < 200 {
		t.Errorf("%+v", a)
	}
}
