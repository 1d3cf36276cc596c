package load

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"skerry/internal/load/audit"
	"skerry/internal/load/ycsb"
	"skerry/internal/machine/files"
)

// store is an in-memory database with configurable faults.
type store struct {
	mu    sync.Mutex
	rows  map[string]map[string][]byte
	calls int
	// every loses every n-th acknowledged write; missing has the fields whose last write was lost.
	every   int
	missing map[string]bool
	// doubt leaves every n-th write in doubt; odd ones take effect.
	doubt  int
	doubts int
	// lag is the number of stale reads of a row after a write.
	lag map[string]int
	old map[string]map[string][]byte
}

func newStore() *store {
	return &store{rows: map[string]map[string][]byte{}, missing: map[string]bool{}}
}

func (s *store) open(context.Context) (Client, error) { return storeClient{s}, nil }

type storeClient struct{ *store }

func (c storeClient) Read(_ context.Context, _, key string, _ []string, dst []Field) ([]Field, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	row := c.rows[key]
	if c.lag[key] > 0 {
		c.lag[key]--
		row = c.old[key]
	}
	if row == nil {
		return dst, ErrNotFound
	}
	for name, v := range row {
		dst = append(dst, Field{Name: name, Value: bytes.Clone(v)})
	}
	return dst, nil
}

func (c storeClient) Scan(context.Context, string, string, int, []string, func(string, []Field)) (int, error) {
	return 0, ErrUnsupported
}

func (c storeClient) write(key string, values []Field, insert bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rows[key] == nil && !insert {
		return ErrNotFound
	}
	c.calls++
	lose := c.every > 0 && c.calls%c.every == 0
	var answer error
	if c.doubt > 0 && c.calls%c.doubt == 0 {
		c.doubts++
		answer, lose = Unknown("timeout", "", errors.New("no answer")), c.doubts%2 == 0
	}
	if c.rows[key] == nil && !lose {
		c.rows[key] = map[string][]byte{}
	}
	for _, v := range values {
		if answer == nil {
			c.missing[key+v.Name] = lose
		}
		if !lose {
			c.rows[key][v.Name] = bytes.Clone(v.Value)
		}
	}
	return answer
}

func (c storeClient) Update(_ context.Context, _, key string, values []Field) error {
	return c.write(key, values, false)
}

func (c storeClient) Insert(_ context.Context, _, key string, values []Field) error {
	return c.write(key, values, true)
}

func (c storeClient) Delete(context.Context, string, string) error { return nil }
func (c storeClient) Close() error                                 { return nil }

// audited loads a table, runs a workload and audits it.
func audited(t *testing.T, s *store, change func(*Spec), between func(), properties ycsb.Properties) AuditResult {
	t.Helper()
	p, _ := ycsb.Builtin("a")
	w, _, err := ycsb.Parse(p.Merge(ycsb.Properties{"recordcount": "500", "operationcount": "20000"}).Merge(properties))
	if err != nil {
		t.Fatal(err)
	}
	spec := Spec{Workload: w, Threads: 1, Seed: 3, Audit: &AuditSpec{File: filepath.Join(t.TempDir(), "ledger"),
		HistoryKeys: 4, Settle: 300 * time.Millisecond}}
	if change != nil {
		change(&spec)
	}
	every, doubt := s.every, s.doubt
	s.every, s.doubt = 0, 0
	load := spec
	load.Phase = PhaseLoad
	if _, err := Run(context.Background(), load, s.open, nil); err != nil {
		t.Fatal(err)
	}
	s.every, s.doubt = every, doubt
	if _, err := Run(context.Background(), spec, s.open, nil); err != nil {
		t.Fatal(err)
	}
	if between != nil {
		between()
	}
	spec.Phase = PhaseAudit
	r, err := Run(context.Background(), spec, s.open, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Audit == nil {
		t.Fatal("no audit")
	}
	return *r.Audit
}

func TestAuditOfCorrectDatabase(t *testing.T) {
	for name, p := range map[string]ycsb.Properties{
		"one field per write":  nil,
		"all fields per write": {"writeallfields": "true"},
		"inserts":              {"insertproportion": "0.3", "readproportion": "0.4", "updateproportion": "0.3"},
		"read-modify-write":    {"readmodifywriteproportion": "0.5", "updateproportion": "0"},
		"other lengths":        {"fieldlengthdistribution": "uniform", "minfieldlength": "16"},
		"the measure's latest": {"requestdistribution": "latest", "insertproportion": "0.1"},
	} {
		for _, threads := range []int{1, 8} {
			s := newStore()
			s.doubt = 50
			a := audited(t, s, func(s *Spec) { s.Threads = threads }, nil, p)
			if a.Lost+a.Stale+a.Unexpected+a.Unread != 0 || a.Keys < 500 || a.InDoubt == 0 || a.Acknowledged < 5000 {
				t.Errorf("%s, %d threads: %+v", name, threads, a)
			}
		}
	}
}

// The audit finds one lost write in a thousand.
func TestAuditFindsRareLostWrites(t *testing.T) {
	s := newStore()
	s.every = 1000
	a := audited(t, s, nil, nil, nil)
	lost := map[string]bool{}
	for where, yes := range s.missing {
		if yes {
			lost[where] = true
		}
	}
	if len(lost) == 0 || a.Lost != int64(len(lost)) || a.Unexpected != 0 || a.Stale != 0 {
		t.Errorf("%d lost, %d unexpected, %d stale; really lost are %d", a.Lost, a.Unexpected, a.Stale, len(lost))
	}
	for _, f := range a.Findings {
		if !lost[f.Key+f.Field] || f.Expected.Version == 0 || f.Expected.End <= a.Began {
			t.Errorf("%+v", f)
		}
	}
}

func TestConcurrentAuditHasNoFalsePositives(t *testing.T) {
	s := newStore()
	s.every, s.doubt = 100, 77
	a := audited(t, s, func(s *Spec) { s.Threads = 16 }, nil, nil)
	if a.Lost == 0 || a.Unexpected != 0 {
		t.Fatalf("%+v", a)
	}
	for _, f := range a.Findings {
		if !s.missing[f.Key+f.Field] {
			t.Errorf("%s %s is there: %+v", f.Key, f.Field, f)
		}
	}
}

func TestAuditSeparatesStaleFromLost(t *testing.T) {
	s := newStore()
	var key string
	between := func() { // one row is read once as it was loaded
		for k := range s.rows {
			key = k
			break
		}
		s.lag, s.old = map[string]int{key: 1}, map[string]map[string][]byte{}
	}
	a := audited(t, s, nil, between, ycsb.Properties{"requestdistribution": "uniform", "readproportion": "0", "updateproportion": "1"})
	if a.Stale == 0 || a.Lost != 0 {
		t.Errorf("%d stale, %d lost", a.Stale, a.Lost)
	}
}

func TestAuditFindsMissingAndUnexpected(t *testing.T) {
	s := newStore()
	between := func() {
		n := 0
		for key, row := range s.rows {
			switch n++; n {
			case 1:
				delete(s.rows, key)
			case 2:
				row["field3"] = []byte("a foreign value, not of this workload")
			}
		}
	}
	a := audited(t, s, nil, between, ycsb.Properties{"readproportion": "1", "updateproportion": "0"})
	if a.Lost != 1 || a.Unexpected != 1 || len(a.Findings) != 2 {
		t.Errorf("%+v", a.Findings)
	}
	// On a replica a missing write is a stale copy.
}

// The history follows four rows. Half of their forty or so writes are lost, so that at least one is
// seen in any order of threads.
func TestHistoryLinearizability(t *testing.T) {
	for _, c := range []struct {
		every    int
		violated bool
	}{{0, false}, {2, true}} {
		s := newStore()
		s.every, s.doubt = c.every, 500
		var file string
		a := audited(t, s, func(s *Spec) { s.Threads, file = 4, s.Audit.File }, nil, nil)
		ops, err := audit.ReadHistory(t.Context(), files.File{On: files.Local{}, Path: file + ".history"}, a.Reads)
		if err != nil {
			t.Fatal(err)
		}
		if len(ops) < 100 || len(a.Reads) < 4 {
			t.Errorf("%d operations, %d reads", len(ops), len(a.Reads))
		}
		r := audit.CheckLinearizable(ops, func(int64) bool { return true }, 10, time.Minute, func(audit.Register) string { return "" })
		if (len(r.Violated) > 0) != c.violated || len(r.Undecided) > 0 {
			t.Errorf("losing one write in %d: %+v", c.every, r)
		}
	}
}
