package ycsb

import (
	"sync"
	"sync/atomic"
)

// Inserts numbers the records that a run inserts and tells how far they can be read.
// Numbers are handed out without a gap and come back in any order; Last moves over a
// number only when all before it came back, so that no request chooses a record that is
// not there yet. A number whose insert did not succeed becomes a hole: passed over, and
// never chosen. (YCSB acknowledges it all the same and reads it later, in vain.)
type Inserts struct {
	next  atomic.Int64
	last  atomic.Int64 // the highest number that all have come back up to
	holes atomic.Int64

	mu      sync.Mutex
	waiting map[int64]struct{} // came back while an earlier one had not
	missing map[int64]struct{} // the holes
	deleted []int64            // deleted, to be inserted again: the first one first
}

// NewInserts hands out numbers from first on; those below count as acknowledged.
func NewInserts(first int64) *Inserts {
	c := &Inserts{waiting: map[int64]struct{}{}, missing: map[int64]struct{}{}}
	c.next.Store(first)
	c.last.Store(first - 1)
	return c
}

// Next hands out a number: of a record that was deleted, or a new one.
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

// scarce tells whether so many records, at least, are holes.
func (c *Inserts) scarce(holes int64) bool { return c.holes.Load() >= holes }

// Remove makes a hole of a record that is to be deleted; false where it is one already.
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

// CompleteRemove tells what became of a delete. What is gone may be inserted again, what certainly is not
// may be chosen again. What is in doubt stays a hole.
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

// fillHole fills a hole. It is called with the lock held.
func (c *Inserts) fillHole(n int64) {
	delete(c.missing, n)
	c.holes.Store(int64(len(c.missing)))
}

// Last is the highest number that requests may choose.
func (c *Inserts) Last() int64 { return c.last.Load() }

// Complete gives a number back: the record is there, or it is not.
func (c *Inserts) Complete(n int64, there bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.last.Load()
	if n <= last { // it had been deleted
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

// Readable tells whether requests may choose a number.
func (c *Inserts) Readable(n int64) bool {
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
