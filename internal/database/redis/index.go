package redis

import (
	"strconv"
)

// groups is how many parts the index has. It is a layout of data: tables that were
// loaded with another number cannot be scanned. 32 parts spread evenly over up to as
// many masters, and a scan asks each.
const groups = 32

// groupSlots is how many neighbouring slots share one part of the index.
const groupSlots = slots / groups

// indexKeys are the keys of the sorted sets. The g-th lies in a slot of its own
// group, in the middle half, so that it mostly moves with the slots that it lists.
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

// indexSlots are the slots of indexKeys.
var indexSlots = func() (s [groups]int) {
	for g, key := range indexKeys {
		s[g] = slotOf(key)
	}
	return s
}()

// appendIndex adds a key to the index (ZADD) or takes it out (ZREM). All scores are 0:
// the set is ordered by its members' bytes.
func (c *client) appendIndex(key, command string) {
	lo, g := len(c.req), slotOf(key)/groupSlots
	if command == "ZADD" {
		c.req = appendCommand(c.req, command, indexKeys[g], "0", key)
	} else {
		c.req = appendCommand(c.req, command, indexKeys[g], key)
	}
	c.queueWrite(indexSlots[g], lo)
}
