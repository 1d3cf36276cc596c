package varint_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/base/varint"
)

// The encoding is stored on disks and must not change.
func TestBytes(t *testing.T) {
	b := varint.Append(nil, 0, 127, 128, math.MaxUint64)
	b = varint.AppendText(varint.AppendText(append(b, 7), "ada"), []byte{})
	want := []byte("\x00\x7f\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x07\x03ada\x00")
	if diff := cmp.Diff(want, b); diff != "" {
		t.Fatal(diff)
	}
	r := varint.NewReader(b)
	for _, want := range []uint64{0, 127, 128, math.MaxUint64} {
		if n := r.Number(); n != want {
			t.Errorf("read %d, want %d", n, want)
		}
	}
	if c, text := r.Byte(), r.Text(); c != 7 || text != "ada" || r.Done() || !r.More() {
		t.Errorf("read %d, %q, done %t", c, text, r.Done())
	}
	if empty := r.Bytes(); empty == nil || len(empty) > 0 || !r.Done() {
		t.Errorf("read %v, done %t", empty, r.Done())
	}
}

// Appending to one part does not change the others.
func TestBytesCapacity(t *testing.T) {
	b := varint.AppendText(varint.AppendText(nil, "one"), "two")
	r := varint.NewReader(b)
	_ = append(r.Bytes(), "more"...)
	if text := r.Text(); text != "two" {
		t.Errorf("read %q", text)
	}
}

// After a missing part, all later parts are missing.
func TestBad(t *testing.T) {
	for name, c := range map[string]struct {
		b    string
		read func(*varint.Reader)
	}{
		"no byte":                           {"", func(r *varint.Reader) { r.Byte() }},
		"no number":                         {"", func(r *varint.Reader) { r.Number() }},
		"a number cut short":                {"\x80", func(r *varint.Reader) { r.Number() }},
		"a number of 65 bits":               {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02\x00", func(r *varint.Reader) { r.Number() }},
		"a text cut short":                  {"\x03ad", func(r *varint.Reader) { r.Text() }},
		"a text of 2^64-1 bytes":            {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01ada", func(r *varint.Reader) { r.Bytes() }},
		"more parts than bytes":             {"\x03\x00\x00\x00\x00\x00", func(r *varint.Reader) { r.Count(2) }},
		"an impossible length":              {"\x01\x00", func(r *varint.Reader) { r.Fail() }},
		"a text without its length":         {"", func(r *varint.Reader) { r.Text() }},
		"a missing count":                   {"\x80", func(r *varint.Reader) { r.Count(1) }},
		"an error followed by a valid part": {"\x80\x00", func(r *varint.Reader) { r.Fail(); r.Number() }},
	} {
		r := varint.NewReader([]byte(c.b))
		c.read(&r)
		if !r.Bad() || r.More() || r.Done() {
			t.Errorf("%s: bad %t, %q left", name, r.Bad(), r.Rest())
		}
		if n, c, text, b := r.Number(), r.Byte(), r.Text(), r.Bytes(); n != 0 || c != 0 || text != "" || b != nil || r.Count(1) != 0 {
			t.Errorf("%s: read %d, %d, %q, %v", name, n, c, text, b)
		}
	}
	if r := varint.NewReader([]byte("\x02\x00\x00\x00\x00")); r.Count(2) != 2 || r.Bad() {
		t.Error("two parts of two bytes do not fit into four")
	}
}

// FuzzReader reads parts from any bytes, in the order of kinds: valid ones are unchanged after writing and reading
// again.
func FuzzReader(f *testing.F) {
	f.Add([]byte{0, 1, 2}, varint.AppendText(append(varint.Append(nil, 300), 1), "ada"))
	f.Add([]byte{0, 2, 0, 1}, []byte("\x80\x00\x83\x00ada\xff"))
	f.Add([]byte{2, 2, 2}, []byte("\x01a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, kinds, b []byte) {
		var again []byte
		var parts []any
		r := varint.NewReader(bytes.Clone(b))
		for _, kind := range kinds {
			part, written := read(&r, kind)
			if r.Bad() {
				break
			}
			parts, again = append(parts, part), append(again, written...)
		}
		if !bytes.HasSuffix(b, r.Rest()) || r.Bad() && r.More() || r.Done() != (!r.Bad() && !r.More()) {
			t.Errorf("input %q: %q remains; bad %t, done %t", b, r.Rest(), r.Bad(), r.Done())
		}
		second := varint.NewReader(again)
		for i, want := range parts {
			got, _ := read(&second, kinds[i])
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		}
		if !second.Done() {
			t.Errorf("encoded as %q; bad %t, %q remains", again, second.Bad(), second.Rest())
		}
	})
}

// read reads a part and writes it.
func read(r *varint.Reader, kind byte) (part any, written []byte) {
	switch kind % 3 {
	case 0:
		n := r.Number()
		return n, varint.Append(nil, n)
	case 1:
		b := r.Byte()
		return b, []byte{b}
	default:
		text := r.Bytes()
		return text, varint.AppendText(nil, text)
	}
}
