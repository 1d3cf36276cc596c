package load

import (
	"time"

	"skerry/internal/load/mdtest"
	"skerry/internal/load/ycsb"
)

// slots is how many WriteSlots a tally tells apart, a power of two: 5 s, of which an interval
// that was flushed late still is a part.
const slots = 512

// writeSlots has a bit for every WriteSlot of the driver's clock in which a write was
// acknowledged, modulo slots.
type writeSlots [slots / 64]uint64

func (s *writeSlots) add(at time.Duration) {
	i := uint64(at/WriteSlot) % slots
	s[i/64] |= 1 << (i % 64)
}

// isWrite tells which series change records.
func (s series) isWrite() bool {
	if s.isTree() {
		return mdtest.Kind(s - treeSeries).Changes()
	}
	return s == series(ycsb.Update) || s == series(ycsb.Insert) || s == series(ycsb.Delete) || s == innerUpdate
}

// since returns the bits from a time to another, the first one first, and clears all.
func (s *writeSlots) since(from, to time.Duration, into []uint64) []uint64 {
	first := int64(from / WriteSlot)
	n := min(int64(to/WriteSlot)-first+1, slots)
	for int64(len(into))*64 < n {
		into = append(into, 0)
	}
	for i := range n {
		if k := uint64(first+i) % slots; s[k/64]&(1<<(k%64)) != 0 {
			into[i/64] |= 1 << (i % 64)
		}
	}
	*s = writeSlots{}
	return into
}
