package ycsb

import (
	"sync"
	"sync/atomic"
)

// Inserts numbers the records that a run inserts. Numbers are handed out without gaps and completed
// in any order. Last passes a number only when all earlier ones are complete, so that no request
// chooses a record that does not exist yet. A failed insert leaves a hole, which requests never
// choose. (YCSB treats it as acknowledged and reads it later, in vain.)
type Inserts struct {
	next  atomic.Int64
	last  atomic.Int64 // all numbers up to it are complete
	holes atomic.Int64

	mu      sync.Mutex
	waiting map[int64]struct{} // completed before an earlier one
	missing map[int64]struct{} // the holes
	deleted []int64            // deleted, in the order of the next inserts
}

// newInserts returns a numbering from first on. Lower numbers count as complete.
func newInserts(first int64) *Inserts {
	c := &Inserts{waiting: map[int64]struct{}{}, missing: map[int64]struct{}{}}
	c.next.Store(first)
	c.last.Store(first - 1)
	return c
}

// Next returns the number of the next insert: a deleted record or a new one.
func (c *Inserts) Next() int64 {
	if c.holes.Load() > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.deleted) > 0 {
			n := c.deleted[0]
			c.deleted = c.deleted[1:]
			return n
		}
	}
	return c.next.Add(1) - 1
}

func (c *Inserts) scarce(holes int64) bool { return c.holes.Load() >= holes }

// Remove makes a hole for a record to be deleted. It returns false if there is one already.
func (c *Inserts) Remove(n int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, hole := c.missing[n]; hole {
		return false
	}
	c.missing[n] = struct{}{}
	c.holes.Store(int64(len(c.missing)))
	return true
}

// CompleteRemove reports the outcome of a delete. A deleted record can be inserted again, and one
// that certainly still exists can be chosen again. A delete in doubt leaves a hole.
func (c *Inserts) CompleteRemove(n int64, gone, doubt bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case gone:
		c.deleted = append(c.deleted, n)
	case !doubt:
		c.fillHole(n)
	}
}

// fillHole removes a hole. The caller holds mu.
func (c *Inserts) fillHole(n int64) {
	delete(c.missing, n)
	c.holes.Store(int64(len(c.missing)))
}

// Last is the highest number that requests may choose.
func (c *Inserts) Last() int64 { return c.last.Load() }

// Complete reports whether the insert of a number succeeded.
func (c *Inserts) Complete(n int64, there bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.last.Load()
	if n <= last { // a deleted record was inserted again
		if there {
			c.fillHole(n)
		}
		return
	}
	if !there {
		c.missing[n] = struct{}{}
		c.holes.Store(int64(len(c.missing)))
	}
	if n != last+1 {
		c.waiting[n] = struct{}{}
		return
	}
	for last = n; ; last++ {
		if _, ok := c.waiting[last+1]; !ok {
			break
		}
		delete(c.waiting, last+1)
	}
	c.last.Store(last)
}

func (c *Inserts) readable(n int64) bool {
	if n > c.last.Load() {
		return false
	}
	if c.holes.Load() == 0 {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, hole := c.missing[n]
	return !hole
}
