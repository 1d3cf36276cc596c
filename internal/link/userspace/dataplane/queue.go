package dataplane

import (
	"math"
	"sync/atomic"
)

const never = math.MaxInt64

// queue holds the directions that have waiting packets and no owner.
type queue struct {
	mu   spin
	heap heap
	// next is the earliest due time, or never.
	next atomic.Int64
}

// put adds or moves d with the due time of its first packet.
func (q *queue) put(d *direction, due int64) {
	q.mu.lock()
	d.due = due
	q.heap.update(d)
	q.publish()
	q.mu.unlock()
}

// popDue removes the direction with the earliest due packet, nil if none is due.
func (q *queue) popDue(now int64) *direction {
	if q.next.Load() > now {
		return nil
	}
	q.mu.lock()
	defer q.mu.unlock()
	if len(q.heap) == 0 || q.heap[0].due > now {
		return nil
	}
	d := q.heap[0]
	q.heap.remove(d)
	q.publish()
	return d
}

// remove removes d if present.
func (q *queue) remove(d *direction) {
	q.mu.lock()
	q.heap.remove(d)
	q.publish()
	q.mu.unlock()
}

func (q *queue) publish() {
	if len(q.heap) == 0 {
		q.next.Store(never)
	} else {
		q.next.Store(q.heap[0].due)
	}
}
