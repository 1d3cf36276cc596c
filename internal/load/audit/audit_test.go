package audit

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/load/ycsb"
	"skerry/internal/machine/files"
)

// table is a workload of two fields.
func table(records int64) ycsb.Workload {
	return ycsb.Workload{Fields: 2, FieldPrefix: "field", RecordCount: records, InsertCount: records}
}

func value() []byte { return bytes.Repeat([]byte("x"), 40) }

// fields returns new values for the named fields.
func fields(names ...string) (out []ycsb.Field) {
	for _, n := range names {
		out = append(out, ycsb.Field{Name: n, Value: value()})
	}
	return out
}

// reality simulates the database with one record.
type reality struct {
	t      *testing.T
	l      *Log
	path   string
	w      *Writer
	number int64
	loaded int64
	clock  time.Duration
	store  []ycsb.Field // nil if the record does not exist
}

func newReality(t *testing.T, loaded int64) *reality {
	t.Helper()
	r := &reality{t: t, path: filepath.Join(t.TempDir(), "log"), loaded: loaded}
	var err error
	if r.l, err = NewLog(r.path, table(loaded)); err != nil {
		t.Fatal(err)
	}
	r.w = r.l.Writer(3)
	if loaded > 0 {
		r.store = fields("field0", "field1")
		StampLoaded(0, r.store)
	}
	return r
}

// write executes a write with or without effect and returns its values.
func (r *reality) write(o Outcome, effect bool, names ...string) []ycsb.Field {
	v := fields(names...)
	r.w.Stamp(r.number, v)
	r.clock += 2
	r.w.End(r.clock-1, r.clock, o)
	if effect {
		r.put(v)
	}
	return v
}

func (r *reality) put(values []ycsb.Field) {
	for _, v := range values {
		r.store = slices.DeleteFunc(r.store, func(f ycsb.Field) bool { return f.Name == v.Name })
		r.store = append(r.store, v)
	}
}

// ledger returns the ledger of the log.
func (r *reality) ledger() *Ledger {
	r.t.Helper()
	l := NewLedger(table(r.loaded))
	if err := errors.Join(r.l.Close(), l.AddLog(r.path)); err != nil {
		r.t.Fatal(err)
	}
	return l
}

// judge reads the record back through a saved ledger.
func (r *reality) judge() []Fault {
	r.t.Helper()
	path := filepath.Join(r.t.TempDir(), "ledger")
	if err := r.ledger().Save(path, 0); err != nil {
		r.t.Fatal(err)
	}
	f, err := Open(r.t.Context(), files.File{On: files.Local{}, Path: path})
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	rec, err := f.Next()
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := f.Next(); !errors.Is(err, io.EOF) {
		r.t.Fatalf("after the last record: %v", err)
	}
	if r.store == nil {
		return rec.JudgeMissing(len(f.Names))
	}
	return rec.Judge(f.Names, r.store)
}

func kinds(faults []Fault) (out []Kind) {
	for _, f := range faults {
		out = append(out, f.Kind)
	}
	return out
}

func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		loaded int64
		play   func(r *reality)
		want   []Kind
	}{
		"as loaded":                  {1, func(*reality) {}, nil},
		"a loaded record is missing": {1, func(r *reality) { r.store = nil }, []Kind{Lost}},
		"updated":                    {1, func(r *reality) { r.write(Acknowledged, true, "field1") }, nil},
		"an update is lost":          {1, func(r *reality) { r.write(Acknowledged, false, "field1") }, []Kind{Lost}},
		"a later update covers a lost one": {1, func(r *reality) {
			r.write(Acknowledged, false, "field1")
			r.write(Acknowledged, true, "field1")
		}, nil},
		"another field does not cover it": {1, func(r *reality) {
			r.write(Acknowledged, false, "field1")
			r.write(Acknowledged, true, "field0")
		}, []Kind{Lost}},
		"an older value is back": {1, func(r *reality) {
			r.write(Acknowledged, true, "field1")
			r.write(Acknowledged, false, "field1")
		}, []Kind{Lost}},
		"in doubt, and there": {1, func(r *reality) { r.write(InDoubt, true, "field1") }, nil},
		"in doubt, and not":   {1, func(r *reality) { r.write(InDoubt, false, "field1") }, nil},
		"in doubt, and late": {1, func(r *reality) {
			v := r.write(InDoubt, false, "field1")
			r.write(Acknowledged, true, "field1")
			r.put(v)
		}, nil},
		"refused, and there":              {1, func(r *reality) { r.write(Refused, true, "field1") }, []Kind{Unexpected}},
		"refused, and not":                {1, func(r *reality) { r.write(Refused, false, "field1") }, nil},
		"inserted":                        {0, func(r *reality) { r.write(Acknowledged, true, "field0", "field1") }, nil},
		"an insert is lost":               {0, func(r *reality) { r.write(Acknowledged, false, "field0", "field1") }, []Kind{Lost}},
		"an insert in doubt, not applied": {0, func(r *reality) { r.write(InDoubt, false, "field0", "field1") }, nil},
		"a refused insert, applied":       {0, func(r *reality) { r.write(Refused, true, "field0", "field1") }, []Kind{Unexpected, Unexpected}},
		"a partial insert":                {0, func(r *reality) { r.put(r.write(Acknowledged, false, "field0", "field1")[:1]) }, []Kind{Lost}},
		"a lost write is one loss":        {1, func(r *reality) { r.write(Acknowledged, false, "field0", "field1") }, []Kind{Lost}},
		"two losses": {1, func(r *reality) {
			r.write(Acknowledged, false, "field0")
			r.write(Acknowledged, false, "field1")
		}, []Kind{Lost, Lost}},
		"a value without a version": {1, func(r *reality) {
			r.store[0].Value = []byte("no client wrote this value, did it")
		}, []Kind{Unexpected}},
		"a short value":                  {1, func(r *reality) { r.store[0].Value = r.store[0].Value[:10] }, []Kind{Unexpected}},
		"a damaged value":                {1, func(r *reality) { r.store[0].Value[30] ^= 1 }, []Kind{Unexpected}},
		"fields swapped":                 {1, func(r *reality) { r.store[0].Value = r.store[1].Value }, []Kind{Unexpected}},
		"deleted":                        {1, func(r *reality) { r.remove(Acknowledged); r.store = nil }, nil},
		"deleted, and back":              {1, func(r *reality) { r.remove(Acknowledged) }, []Kind{Unexpected, Unexpected}},
		"a delete in doubt, not applied": {1, func(r *reality) { r.remove(InDoubt) }, nil},
		"a delete in doubt, applied":     {1, func(r *reality) { r.remove(InDoubt); r.store = nil }, nil},
		"a refused delete, applied":      {1, func(r *reality) { r.remove(Refused); r.store = nil }, []Kind{Lost}},
		"deleted and inserted again": {1, func(r *reality) {
			r.remove(Acknowledged)
			r.write(Acknowledged, true, "field0",
				"field1")
		}, nil},
		"updated during a doubtful write": {1, func(r *reality) {
			r.write(InDoubt, false, "field0")
			r.write(Acknowledged, true,
				"field0")
		}, nil},
		"acknowledged after doubts": {1, func(r *reality) {
			r.write(Acknowledged, false, "field0")
			r.write(InDoubt, false, "field0")
		}, []Kind{Lost}},
	} {
		r := newReality(t, c.loaded)
		c.play(r)
		if diff := cmp.Diff(c.want, kinds(r.judge())); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func (r *reality) remove(o Outcome) {
	r.w.beginWrite(r.number)
	r.w.current.Gone = true
	r.clock += 2
	r.w.End(r.clock-1, r.clock, o)
}

func TestConcurrentWritesEitherLast(t *testing.T) {
	for _, last := range []int{0, 1} {
		r := newReality(t, 1)
		other := r.l.Writer(4)
		mine, theirs := fields("field0"), fields("field0")
		r.w.Stamp(0, mine)
		other.Stamp(0, theirs)
		r.w.End(10, 30, Acknowledged)
		other.End(20, 40, Acknowledged)
		r.put([][]ycsb.Field{mine, theirs}[last])
		if got := r.judge(); got != nil {
			t.Errorf("%d: %+v", last, got)
		}
	}
}

func TestLostWriteHasExpectedVersion(t *testing.T) {
	r := newReality(t, 1)
	r.write(Acknowledged, true, "field0")
	r.write(Acknowledged, false, "field0")
	got := r.judge()
	if len(got) != 1 || got[0].Expected.End != 4 || got[0].Expected.Version.String() != "3.2" || got[0].Saw != "3.1" || got[0].Field != 0 {
		t.Errorf("%+v", got)
	}
}

func TestSupersededWritesAreFreed(t *testing.T) {
	r := newReality(t, 1)
	for range 10_000 {
		r.write(Acknowledged, true, "field0")
	}
	l := r.ledger()
	if l.used > 4 {
		t.Errorf("%d nodes for one field", l.used)
	}
	if a := l.Counts().Acknowledged; a != 10_000 {
		t.Errorf("%d acknowledged", a)
	}
}

func TestTruncatedLedgerIsRejected(t *testing.T) {
	r := newReality(t, 1)
	r.write(Acknowledged, true, "field0")
	path := filepath.Join(t.TempDir(), "ledger")
	if err := r.ledger().Save(path, 0); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Open(t.Context(), files.File{On: files.Local{}, Path: path})
		if err == nil {
			_, err = f.Next()
			f.Close()
		}
		if !errors.Is(err, errFile) {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	v := value()
	writeTag(v, 7, 1, 42)
	f.Add(v, int64(7), 1)
	f.Add([]byte("short"), int64(0), 0)
	f.Fuzz(func(t *testing.T, b []byte, number int64, field int) {
		v, ok := readTag(b, number, field)
		if !ok {
			return
		}
		again := bytes.Clone(b)
		writeTag(again, number, field, v)
		if !bytes.Equal(again, b) {
			t.Fatalf("%q was parsed as %v, which is formatted as %q", b, v, again)
		}
	})
}
