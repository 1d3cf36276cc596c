package ycsb

import (
	"bytes"
	"sort"
	"strconv"
	"strings"
)

type lengths struct {
	Length
	zipf       zipf
	cumulative []int64 // cumulative weights
}

func newLengths(l Length) lengths {
	s := lengths{Length: l}
	switch l.Distribution {
	case Zipfian:
		s.zipf = newZipfian(l.Max - l.Min + 1)
	case Histogram:
		var sum int64
		for _, n := range l.Buckets {
			sum += n
			s.cumulative = append(s.cumulative, sum)
		}
	}
	return s
}

func (l *lengths) draw(r *Rand) int64 {
	switch l.Distribution {
	case Uniform:
		return l.Min + r.Int64N(l.Max-l.Min+1)
	case Zipfian: // favours short ones
		return l.Min + l.zipf.rank(r.Float64())
	case Histogram:
		n := r.Int64N(l.cumulative[len(l.cumulative)-1])
		i := sort.Search(len(l.cumulative), func(i int) bool { return l.cumulative[i] > n })
		return int64(i+1) * l.Block
	}
	return l.Max
}

// appendValue appends YCSB's deterministic value of a field: "key:field", then ":" and the Java
// hash code of the text so far, repeated and cut to size.
func appendValue(b []byte, key, field string, size int) []byte {
	from := len(b)
	var hash int32
	add := func(s string) {
		for i := range len(s) {
			hash = 31*hash + int32(s[i])
		}
		b = append(b, s...)
	}
	add(key)
	add(":")
	add(field)
	var number [12]byte
	for len(b)-from < size {
		add(":")
		add(string(strconv.AppendInt(number[:0], int64(hash), 10)))
	}
	return b[:from+size]
}

// Verification is the result of checking a read.
type Verification uint8

// Verifications, with YCSB's names OK, UNEXPECTED_STATE and ERROR.
const (
	Verified Verification = iota
	Wrong                 // a field is wrong or missing
	Missing               // the record is missing
)

// String returns the code in YCSB's VERIFY series.
func (v Verification) String() string {
	return [...]string{"OK", "UNEXPECTED_STATE", "ERROR"}[v]
}

// Verify checks the fields that a read of op returned. Unlike YCSB, it rejects a missing field.
func (g *Generator) Verify(op *Op, fields []Field) Verification {
	if len(fields) == 0 {
		return Missing
	}
	want := op.Fields
	if want == nil {
		want = g.names
	}
	if len(fields) != len(want) {
		return Wrong
	}
	for _, f := range fields {
		g.scratch = appendValue(g.scratch[:0], op.Key, f.Name, int(g.w.FieldLength.Max))
		if !bytes.Equal(g.scratch, f.Value) {
			return Wrong
		}
	}
	return Verified
}

const (
	fnvOffset = 0xCBF29CE484222325
	fnvPrime  = 1099511628211
)

// fnvHash is YCSB's fnvhash64: the absolute value of FNV-1a over the eight bytes of v, lowest first.
// It wraps around as Java's arithmetic does.
func fnvHash(v int64) int64 {
	h := uint64(fnvOffset)
	u := uint64(v)
	for range 8 {
		h = (h ^ u&0xff) * fnvPrime
		u >>= 8
	}
	if s := int64(h); s < 0 {
		return -s
	}
	return int64(h)
}

const (
	keyPrefix = "user"
	zeros     = "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
)

// Key returns the key of record n: "user" and the number's hash, or the number itself if keys are
// ordered, padded with zeros on the left.
func (w *Workload) Key(n int64) string {
	var b strings.Builder
	w.writeKey(&b, n)
	return b.String()
}

func (w *Workload) writeKey(b *strings.Builder, n int64) {
	if !w.OrderedKeys {
		n = fnvHash(n)
	}
	var scratch [20]byte
	digits := strconv.AppendInt(scratch[:0], n, 10)
	b.WriteString(keyPrefix)
	if fill := min(w.ZeroPadding, len(zeros)) - len(digits); fill > 0 {
		b.WriteString(zeros[:fill])
	}
	b.Write(digits)
}

// keyArena creates keys without an allocation for each. Many strings share a block, which is not
// modified once it is full and is freed with its last key.
type keyArena struct{ b strings.Builder }

const (
	arenaBlock = 32 << 10
	maxKey     = len(keyPrefix) + len(zeros) + 20
)

func (a *keyArena) key(w *Workload, n int64) string {
	if a.b.Cap()-a.b.Len() < maxKey {
		a.b.Reset()
		a.b.Grow(arenaBlock)
	}
	from := a.b.Len()
	w.writeKey(&a.b, n)
	return a.b.String()[from:]
}
