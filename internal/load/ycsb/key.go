package ycsb

import (
	"strconv"
	"strings"
)

const (
	fnvOffset = 0xCBF29CE484222325
	fnvPrime  = 1099511628211
)

// Hash is YCSB's fnvhash64: FNV-1a over the eight octets of v, the low one first, and
// of the result the absolute value. It wraps around as Java's arithmetic does.
func Hash(v int64) int64 {
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

// Key is the key of record number n: "user" and the number's hash, or the number itself
// where keys are ordered, padded with zeros on the left.
func (w *Workload) Key(n int64) string {
	var b strings.Builder
	w.writeKey(&b, n)
	return b.String()
}

func (w *Workload) writeKey(b *strings.Builder, n int64) {
	if !w.OrderedKeys {
		n = Hash(n)
	}
	var scratch [20]byte
	digits := strconv.AppendInt(scratch[:0], n, 10)
	b.WriteString(keyPrefix)
	if fill := min(w.ZeroPadding, len(zeros)) - len(digits); fill > 0 {
		b.WriteString(zeros[:fill])
	}
	b.Write(digits)
}

// keyArena makes keys without an allocation for each: many strings share one block,
// which is never written again once it is full and goes when its last key goes.
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
