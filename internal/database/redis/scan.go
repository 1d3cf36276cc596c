package redis

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"skerry/internal/load"
)

type scanner struct {
	open   []part
	keys   [][]byte // candidates, in order once merged
	fields []load.Field
	low    []byte // the scan's lower bound, for ZRANGEBYLEX
	bound  []byte // scratch: a bound behind a key
}

// part is a part of the index that may hold further keys.
type part struct {
	group int
	last  []byte // the last key read from it
}

// Scan visits records in the order of their keys' bytes. It may miss concurrent inserts and deletes.
func (c *client) Scan(ctx context.Context, _, start string, count int, fields []string, visit func(string, []load.Field)) (int, error) {
	if !c.scan {
		return 0, fmt.Errorf("%w: scanning needs an index, which %s=true keeps while loading", load.ErrUnsupported, PropScan)
	}
	deadline, err := c.beginOperation(ctx)
	if err != nil || count <= 0 {
		return 0, err
	}
	s := &c.scanner
	s.keys, s.open = s.keys[:0], s.open[:0]
	for g := range groups {
		s.open = append(s.open, part{group: g})
	}
	s.low = append(append(append(s.low[:0], '['), c.prefix...), start...)
	seen := 0
	for seen < count {
		sure, err := c.nextKeys(ctx, deadline, count-seen)
		if err != nil {
			return seen, err
		}
		if len(sure) == 0 {
			break // the end of the table
		}
		n, err := c.readRecords(ctx, deadline, sure, fields, visit)
		seen += n
		if err != nil {
			return seen, err
		}
	}
	return seen, nil
}

// scanLimit is the number of keys to read from one part: the mean count/groups plus three standard deviations.
func scanLimit(count int) int {
	mean := float64(count) / groups
	return int(math.Ceil(mean + 3*math.Sqrt(mean) + 3))
}

// nextKeys returns up to count next keys, and queries the index for more if needed:
//
//	part 0   a     d   f |          reached the limit at f: there may be more
//	part 1     b c     .   g  h     below the limit: no more
//	                   ^
//	         the order is final up to f, whatever part 0 holds beyond f
func (c *client) nextKeys(ctx context.Context, deadline time.Time, count int) ([][]byte, error) {
	s := &c.scanner
	for {
		sure := s.countOrdered()
		if sure >= count || len(s.open) == 0 {
			keys := s.keys[:min(count, sure)]
			s.keys = s.keys[len(keys):]
			return keys, nil
		}
		if err := c.queryParts(ctx, deadline, scanLimit(count-sure)); err != nil {
			return nil, err
		}
		slices.SortFunc(s.keys, bytes.Compare)
	}
}

// countOrdered counts the leading candidates whose order is final.
func (s *scanner) countOrdered() int {
	n := len(s.keys)
	for _, p := range s.open {
		if p.last == nil {
			return 0
		}
		i, found := slices.BinarySearchFunc(s.keys, p.last, bytes.Compare)
		if found {
			i++
		}
		n = min(n, i)
	}
	return n
}

// boundAfter returns the lower bound of a range behind key.
func (s *scanner) boundAfter(key []byte) []byte {
	s.bound = append(append(s.bound[:0], '('), key...)
	return s.bound
}

// queryParts reads the next keys of all open parts at the same time.
func (c *client) queryParts(ctx context.Context, deadline time.Time, limit int) error {
	s, first := &c.scanner, len(c.calls)
	for _, p := range s.open {
		lo := len(c.req)
		c.req = append(c.req, "*7\r\n$11\r\nZRANGEBYLEX\r\n"...)
		c.req = appendBulk(c.req, c.index[p.group])
		if p.last == nil {
			c.req = appendBulk(c.req, s.low)
		} else {
			c.req = appendBulk(c.req, s.boundAfter(p.last))
		}
		c.req = append(c.req, "$1\r\n+\r\n$5\r\nLIMIT\r\n$1\r\n0\r\n"...)
		c.req = appendBulk(c.req, strconv.Itoa(limit))
		c.queueCall(indexSlots[p.group], lo)
	}
	c.runCalls(ctx, deadline, first)
	open := s.open[:0]
	for i, p := range s.open {
		k := &c.calls[first+i]
		if k.err != nil {
			return k.err
		}
		buf := k.lane.in
		head, at, _, _ := parseElement(buf, k.at) // complete: skip has read it
		for range head.n {
			e, next, _, _ := parseElement(buf, at)
			s.keys, p.last, at = append(s.keys, e.text), e.text, next
		}
		if head.n >= int64(limit) {
			open = append(open, p)
		}
	}
	s.open = open
	return nil
}

// readRecords reads and visits records. It skips index entries without a record.
func (c *client) readRecords(
	ctx context.Context, deadline time.Time, keys [][]byte, fields []string, visit func(string, []load.Field),
) (int, error) {
	first := len(c.calls)
	for _, key := range keys {
		appendGet(c, key, fields)
	}
	c.runCalls(ctx, deadline, first)
	seen := 0
	for i, key := range keys {
		k := &c.calls[first+i]
		if k.err != nil {
			return seen, k.err
		}
		f := c.decodeRecord(k, fields, c.scanner.fields[:0])
		c.scanner.fields = f
		if len(f) == 0 {
			continue
		}
		seen++
		if visit != nil {
			visit(string(key[len(c.prefix):]), f)
		}
	}
	return seen, nil
}

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
