package cassandra

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// tokenOf is the place of a key on the ring of Murmur3Partitioner: the first half of
// MurmurHash3_x64_128 with seed 0, in Cassandra's variant of it, which takes the bytes
// of the tail as signed numbers.
func tokenOf(key string) int64 {
	const c1, c2 = 0x87c37b91114253d5, 0x4cf5ad432745937f
	var h1, h2 uint64
	data := []byte(key)
	for ; len(data) >= 16; data = data[16:] {
		h1 ^= mixBlock(binary.LittleEndian.Uint64(data), c1, c2, 31)
		h1 = (bits.RotateLeft64(h1, 27)+h2)*5 + 0x52dce729
		h2 ^= mixBlock(binary.LittleEndian.Uint64(data[8:]), c2, c1, 33)
		h2 = (bits.RotateLeft64(h2, 31)+h1)*5 + 0x38495ab5
	}
	var k1, k2 uint64
	for i, b := range data {
		signed := uint64(int64(int8(b)))
		if i < 8 {
			k1 ^= signed << (8 * i)
		} else {
			k2 ^= signed << (8 * (i - 8))
		}
	}
	h2 ^= mixBlock(k2, c2, c1, 33)
	h1 ^= mixBlock(k1, c1, c2, 31)
	h1 ^= uint64(len(key))
	h2 ^= uint64(len(key))
	h1 += h2
	h2 += h1
	h1 = finalMix(h1) + finalMix(h2)
	if int64(h1) == math.MinInt64 { // nobody's token
		return math.MaxInt64
	}
	return int64(h1)
}

func mixBlock(k, by, then uint64, rotate int) uint64 { return bits.RotateLeft64(k*by, rotate) * then }

func finalMix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
