package shape

import "skerry/internal/link/userspace/packet"

// item is a packet in flight.
type item struct {
	packet  *packet.Packet
	due     int64 // when it arrives
	departs int64 // when its last bit is on the wire
	size    int64 // layer-3 bytes
}

// fifo holds the packets in flight, in the order of their due times, and knows which of
// them still wait for the bandwidth.
//
//	first          departed            added
//	  │ on their way  │ waiting for the wire │
//	  ▼               ▼                      ▼
type fifo struct {
	ring     []item // length is a power of two
	first    uint64 // counts of items since the beginning
	departed uint64
	added    uint64
	bytes    int64 // of those that wait
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
	bigger := fifo{ring: make([]item, max(firstRing, 2*len(q.ring)))}
	for i := q.first; i < q.added; i++ {
		*bigger.at(i) = *q.at(i)
	}
	q.ring = bigger.ring
}

func (q *fifo) pop() item {
	head := q.head()
	got := *head
	*head = item{}
	if q.departed == q.first {
		q.departed++
		q.bytes -= got.size
	}
	q.first++
	return got
}

// waiting is the bytes that have not left for the wire at a time.
func (q *fifo) waiting(now int64) int64 {
	for q.departed < q.added && q.at(q.departed).departs <= now {
		q.bytes -= q.at(q.departed).size
		q.departed++
	}
	return q.bytes
}
