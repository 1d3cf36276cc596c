package shaper

import "skerry/internal/link/userspace/packet"

// item is a packet on the link. A reordered packet occupies the wire but was sent already: its packet is nil.
type item struct {
	packet  *packet.Packet
	size    int64 // layer-3 bytes
	until   int64 // earliest due time, set by another machine; 0 means none
	arrived int64 // time of Offer
	departs int64 // when its last bit leaves the wire; set in flight
	due     int64 // time of arrival at the far end; set in flight
}

type fifo struct {
	ring  []item // length is a power of two
	first uint64 // total of removed items
	added uint64
	bytes int64 // of all items
}

const firstRing = 16

func (q *fifo) len() int { return int(q.added - q.first) }

func (q *fifo) at(i uint64) *item { return &q.ring[i&uint64(len(q.ring)-1)] }

func (q *fifo) head() *item { return q.at(q.first) }

func (q *fifo) push(i item) {
	if q.len() == len(q.ring) {
		q.grow()
	}
	*q.at(q.added) = i
	q.added++
	q.bytes += i.size
}

func (q *fifo) grow() {
	ring := make([]item, max(firstRing, 2*len(q.ring)))
	for i := q.first; i < q.added; i++ {
		ring[i&uint64(len(ring)-1)] = *q.at(i)
	}
	q.ring = ring
}

func (q *fifo) pop() item {
	head := q.head()
	got := *head
	*head = item{}
	q.first++
	q.bytes -= got.size
	return got
}
