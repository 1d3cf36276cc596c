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

// heap orders the directions with waiting packets by due time, earliest first. A direction knows its
// place, so that it can move or be removed.
type heap []*direction

// update moves d to its place, and adds it if necessary.
func (h *heap) update(d *direction) {
	if d.place < 0 {
		d.place = len(*h)
		*h = append(*h, d)
	}
	if !h.up(d.place) {
		h.down(d.place)
	}
}

// remove removes d if present.
func (h *heap) remove(d *direction) {
	i := d.place
	if i < 0 {
		return
	}
	last := len(*h) - 1
	h.swap(i, last)
	(*h)[last] = nil
	*h = (*h)[:last]
	d.place = -1
	if i < last && !h.up(i) {
		h.down(i)
	}
}

func (h heap) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h heap) up(i int) (moved bool) {
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent].due <= h[i].due {
			break
		}
		h.swap(i, parent)
		i, moved = parent, true
	}
	return moved
}

func (h heap) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child].due < h[least].due {
				least = child
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}
