package redis

import (
	"strconv"
)

const slots = 16384

// crcTable is CRC-16/XMODEM (polynomial 0x1021), https://redis.io/docs/reference/cluster-spec/, appendix A.
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

// slotOf returns the hash slot of a key, or of the content of its first {...}.
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

// groups is the number of parts of the index. It is part of the data layout.
const groups = 32

// groupSlots is the number of neighbouring slots that share one part of the index.
const groupSlots = slots / groups

// indexKeys are the keys of the sorted sets. Key g hashes to the middle half of its group, to move with its slots.
var indexKeys = func() (keys [groups]string) {
	for i, found := 0, 0; found < groups; i++ {
		key := "{skerry:" + strconv.Itoa(i) + "}:index"
		slot := slotOf(key)
		g, within := slot/groupSlots, slot%groupSlots
		if keys[g] == "" && within >= groupSlots/4 && within < 3*groupSlots/4 {
			keys[g] = key
			found++
		}
	}
	return keys
}()

// prefixedIndex returns indexKeys with a prefix. Their slots stay the same: only the text in braces is hashed.
func prefixedIndex(prefix string) (keys [groups]string) {
	for g, key := range indexKeys {
		keys[g] = prefix + key
	}
	return keys
}

var indexSlots = func() (s [groups]int) {
	for g, key := range indexKeys {
		s[g] = slotOf(key)
	}
	return s
}()

// appendIndex queues ZADD or ZREM of a key. Equal scores order the set by its members' bytes.
func (c *client) appendIndex(key, command string) {
	lo, g := len(c.req), slotOf(key)/groupSlots
	if command == "ZADD" {
		c.req = appendCommand(c.req, command, c.index[g], "0", key)
	} else {
		c.req = appendCommand(c.req, command, c.index[g], key)
	}
	c.queueWrite(indexSlots[g], lo)
}
