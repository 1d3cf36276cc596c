package netem

import (
	"encoding/binary"
	"math"

	"skerry/internal/link"
)

// tableSize is that of iproute2's tables, tableScale what netem divides values by.
const (
	tableSize  = 4096
	tableScale = 8192
)

// tables keeps the distribution tables made so far: one takes longer to make than a
// change to the kernel.
type tables map[link.Distribution][]byte

func (t tables) get(d link.Distribution) []byte {
	if t[d] == nil {
		t[d] = delayTable(d)
	}
	return t[d]
}

// delayTable is a distribution as netem takes it: 16-bit numbers in the machine's order.
func delayTable(d link.Distribution) []byte {
	var b []byte
	for _, x := range d.Table(tableSize) {
		b = binary.NativeEndian.AppendUint16(b, uint16(int16(math.Round(x*tableScale))))
	}
	return b
}
