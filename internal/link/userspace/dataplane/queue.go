package dataplane

import (
	"math"
	"sync/atomic"
)

// never is later than any due time.
const never = math.MaxInt64

// queue is the directions on which packets wait and that no thread is sending for.
type queue struct {
	mu   spin
	heap heap
	// next is when the first packet of all is due, never where none waits.
	next atomic.Int64
}

// put takes d in with the due time of its first packet.
func (q *queue) put(d *direction, due int64) {
	q.mu.lock()
	d.due = due
	q.heap.update(d)
	q.publish()
	q.mu.unlock()
}

// popDue gives out the direction whose packet is due first, nil when none is due at a time.
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

// remove takes d out; it need not be in.
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
