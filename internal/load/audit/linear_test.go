package audit

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry/internal/machine/files"
)

func write(worker int, call, ret int64, v Version) Operation {
	return Operation{Worker: worker, Call: call, Return: ret, Fields: []int{0}, Versions: []Version{v}}
}

func read(worker int, call, ret int64, v Version) Operation {
	o := write(worker, call, ret, v)
	o.Read = true
	return o
}

func check(h []Operation, loaded bool) Linearizability {
	return CheckLinearizable(h, func(int64) bool { return loaded }, 2, time.Minute,
		func(r Register) string { return fmt.Sprintf("user%d.field%d", r.Number, r.Field) })
}

func TestLinearizability(t *testing.T) {
	open := write(1, 10, 0, 7)
	open.Open = true
	missing := Operation{Read: true, Call: 1, Return: 2, Missing: true}
	strange := read(1, 30, 40, 0)
	strange.Strange = true
	for name, c := range map[string]struct {
		h      []Operation
		loaded bool
		bad    int
	}{
		"read the written value":        {[]Operation{write(1, 1, 2, 7), read(2, 3, 4, 7)}, true, 0},
		"a stale read":                  {[]Operation{write(1, 1, 2, 7), read(2, 3, 4, 0)}, true, 1},
		"either value during the write": {[]Operation{write(1, 1, 10, 7), read(2, 2, 3, 0), read(2, 4, 5, 7)}, true, 0},
		"no return to the old value":    {[]Operation{write(1, 1, 10, 7), read(2, 2, 3, 7), read(2, 4, 5, 0)}, true, 1},
		"in doubt, seen":                {[]Operation{open, read(2, 20, 30, 7)}, true, 0},
		"in doubt, never seen":          {[]Operation{open, read(2, 20, 30, 0)}, true, 0},
		"in doubt, seen late":           {[]Operation{open, read(2, 20, 30, 0), read(2, 31, 32, 7)}, true, 0},
		"in doubt, seen and lost":       {[]Operation{open, read(2, 20, 30, 7), read(2, 31, 32, 0)}, true, 1},
		"not yet visible":               {[]Operation{missing, write(1, 3, 4, 7), read(2, 5, 6, 7)}, false, 0},
		"a loaded record is missing":    {[]Operation{missing}, true, 2},
		"a value that no client wrote":  {[]Operation{strange}, true, 0},
		"one of two concurrent writes is last": {[]Operation{write(1, 1, 10, 7), write(2, 2, 9, 8), read(3, 11, 12, 7),
			read(3, 13, 14, 7)}, true, 0},
		"two concurrent writes are not both last": {[]Operation{write(1, 1, 10, 7), write(2, 2, 9, 8), read(3, 11, 12, 7),
			read(3, 13, 14, 8)}, true, 1},
		"each field is a separate register": {[]Operation{{Worker: 1, Call: 1, Return: 2, Fields: []int{1},
			Versions: []Version{9}}, read(2, 3, 4, 0)}, true, 0},
	} {
		if r := check(c.h, c.loaded); len(r.Violated) != c.bad || len(r.Undecided) != 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestPageShowsViolations(t *testing.T) {
	var h []Operation
	for i := range int64(100) {
		h = append(h, write(1, 10*i+1, 10*i+2, Version(i+1)), read(2, 10*i+3, 10*i+4, Version(i+1)))
	}
	h = append(h, read(2, 2000, 2001, 3))
	r := check(h, true)
	if len(r.Violated) != 1 || r.Keys != 1 || r.Operations != 201 {
		t.Fatalf("%+v", r.Violated)
	}
	var b bytes.Buffer
	if err := r.WritePage(&b); err != nil || !strings.Contains(b.String(), "user0.field0") {
		t.Errorf("%v; %d bytes", err, b.Len())
	}
}

// A history that grew too long is cut at a point in time. The cut causes no violation.
func TestCutHistoryIsLinearizable(t *testing.T) {
	h := NewHistory([]int64{5})
	clock := int64(0)
	late := Operation{Worker: 9, Number: 5, Call: 1, Fields: []int{0}, Versions: []Version{99}}
	for i := range int64(4000) {
		clock += 10
		o := write(1, clock, clock+2, Version(100+i))
		if i == 100 { // it takes effect here and ends long after the cut
			r := read(2, clock+3, clock+4, 99)
			r.Number = 5
			h.Add(r)
			late.Return = clock + 100_000
			continue
		}
		r := read(2, clock+3, clock+4, Version(100+i))
		o.Number, r.Number = 5, 5
		h.Add(o)
		h.Add(r)
	}
	h.Add(late)
	path := filepath.Join(t.TempDir(), "history")
	if err := h.Save(path); err != nil {
		t.Fatal(err)
	}
	// The last read sees a write after the cut. The other record was never written and has the
	// load's value.
	last, quiet := read(-1, 0, 0, 123_456), read(-1, 0, 0, 0)
	last.Number, quiet.Number = 5, 6
	ops, err := ReadHistory(t.Context(), files.File{On: files.Local{}, Path: path}, []Operation{last, quiet})
	if err != nil {
		t.Fatal(err)
	}
	if o := ops[len(ops)-1]; o.Number != 6 || o.Call <= ops[len(ops)-2].Return || o.Return <= o.Call {
		t.Errorf("the last operation is %+v", o)
	}
	if r := check(ops, true); len(r.Violated) != 0 || len(ops) < 2900 || len(ops) > 3100 {
		t.Errorf("%d operations: %+v", len(ops), r.Violated)
	}
}
