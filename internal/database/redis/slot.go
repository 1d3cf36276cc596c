package redis

// slots is how many hash slots a Redis Cluster divides its keys into.
const slots = 16384

// crcTable is CRC-16/XMODEM (polynomial 0x1021), which Redis Cluster hashes keys with:
// the specification's appendix A, https://redis.io/docs/reference/cluster-spec/.
var crcTable = func() (t [256]uint16) {
	for i := range t {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		t[i] = crc
	}
	return t
}()

// slotOf is the hash slot of a key. When the key holds {...} with something inside,
// only that is hashed.
func slotOf[T string | []byte](key T) int {
	lo, hi := 0, len(key)
	if open := indexByte(key, 0, '{'); open >= 0 {
		if end := indexByte(key, open+1, '}'); end > open+1 {
			lo, hi = open+1, end
		}
	}
	var crc uint16
	for i := lo; i < hi; i++ {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^key[i]]
	}
	return int(crc % slots)
}

func indexByte[T string | []byte](key T, from int, b byte) int {
	for i := from; i < len(key); i++ {
		if key[i] == b {
			return i
		}
	}
	return -1
}
