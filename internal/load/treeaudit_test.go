package load

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/load/mdtest"
	"skerry/internal/load/ycsb"
)

// grove is a tree in memory. Of what is created it forgets one file, which it does not let
// anybody remove, and of what is removed it keeps one, though it acknowledges both; other
// changes it leaves in doubt.
type grove struct {
	Client
	*garden
}

type garden struct {
	mu               sync.Mutex
	there            map[mdtest.Entry]bool
	lost, kept, late mdtest.Entry
	created, removed int
	looks            int // for what was created late
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
			return Failed("busy", "", errors.New("somebody has it open"))
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

// TestAuditTree finds what a tree that loses and keeps has lost and kept, and nothing else.
func TestAuditTree(t *testing.T) {
	w := workload(t, "a", ycsb.Properties{"recordcount": "20", "operationcount": "20"})
	tree, err := mdtest.Parse(mdtest.Namespace, 20, map[string]string{
		"files": "10", "shared": "0.5", "listproportion": "0", "statproportion": "0", "createproportion": "1", "mkdirproportion": "0", "renameproportion": "0", "removeproportion": "0.2",
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
	for e := range g.there { // a loaded file, late for two looks
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
		t.Fatal("nothing was lost, or kept")
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
