package ycsb

import (
	"encoding/binary"
	"math/bits"
)

// Rand is wyrand, a generator of 64 bits of state, cheap to seed anew for every
// operation: what the n-th operation is depends on the seed and n alone, however
// many workers share the operations. Not for cryptography.
type Rand struct{ state uint64 }

const (
	wyStep = 0xa0761d6478bd642f
	wyMask = 0xe7037ed1a0b428db
)

// NewRand is the n-th stream of a seed.
func NewRand(seed, n uint64) Rand {
	return Rand{mix(seed ^ mix(n+0x9e3779b97f4a7c15))}
}

// mix is the finaliser of splitmix64: every bit of v moves half of the result's.
func mix(v uint64) uint64 {
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}

// Uint64 is uniform.
func (r *Rand) Uint64() uint64 {
	r.state += wyStep
	hi, lo := bits.Mul64(r.state, r.state^wyMask)
	return hi ^ lo
}

// Float64 is uniform in [0, 1).
func (r *Rand) Float64() float64 { return float64(r.Uint64()>>11) * 0x1p-53 }

// Int64N is uniform in [0, n), for n > 0; its bias is below n / 2^64.
func (r *Rand) Int64N(n int64) int64 {
	hi, _ := bits.Mul64(r.Uint64(), uint64(n))
	return int64(hi)
}

// Text fills b with 64 characters of ASCII, from the space to the underscore: six
// random bits a byte, hardly compressible, and safe in any encoding.
func (r *Rand) Text(b []byte) {
	const low6, space = 0x3f3f3f3f3f3f3f3f, 0x2020202020202020
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, r.Uint64()&low6+space)
	}
	if len(b) > 0 {
		var last [8]byte
		binary.LittleEndian.PutUint64(last[:], r.Uint64()&low6+space)
		copy(b, last[:])
	}
}
