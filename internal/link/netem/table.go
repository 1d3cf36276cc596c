package netem

import (
	"encoding/binary"
	"math"

	"skerry/internal/link"
)

// tableSize is the size of iproute2's tables; netem divides their values by tableScale.
const (
	tableSize  = 4096
	tableScale = 8192
)

// tables caches distribution tables: computing one takes longer than a change in the kernel.
type tables map[link.Distribution][]byte

func (t tables) get(d link.Distribution) []byte {
	if t[d] == nil {
		t[d] = delayTable(d)
	}
	return t[d]
}

// delayTable encodes a distribution as 16-bit numbers in host byte order.
func delayTable(d link.Distribution) []byte {
	var b []byte
	for _, x := range d.Table(tableSize) {
		b = binary.NativeEndian.AppendUint16(b, uint16(int16(math.Round(x*tableScale))))
	}
	return b
}
