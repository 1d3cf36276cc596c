package tree

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// slotLock is a lock that many hold at once and that is seldom wanted by one alone: each
// holder locks one of many slots, on a cache line of its own, and who wants to be alone
// locks them all, in order.
type slotLock struct {
	slots []slot
}

type slot struct {
	sync.RWMutex
	_ [64]byte // the next slot is on another cache line
}

func newSlotLock() slotLock {
	n := 1
	for n < 4*runtime.GOMAXPROCS(0) {
		n *= 2
	}
	return slotLock{slots: make([]slot, n)}
}

// rlockOne locks for one of many.
func (s *slotLock) rlockOne(w *waitCounter) *slot {
	l := &s.slots[rand.Uint32()&uint32(len(s.slots)-1)]
	if !l.TryRLock() {
		start := time.Now()
		l.RLock()
		w.add(start)
	}
	return l
}

// lockAll locks for one; end unlocks.
func (s *slotLock) lockAll(w *waitCounter) (end func()) {
	start, waited := time.Time{}, false
	for i := range s.slots {
		if s.slots[i].TryLock() {
			continue
		}
		if !waited {
			start, waited = time.Now(), true
		}
		s.slots[i].Lock()
	}
	if waited {
		w.add(start)
	}
	return func() {
		for i := range s.slots {
			s.slots[i].Unlock()
		}
	}
}

// waitCounter counts the locks that had to be waited for, and how long.
type waitCounter struct {
	count, nanoseconds atomic.Int64
}

func (w *waitCounter) add(start time.Time) {
	w.count.Add(1)
	w.nanoseconds.Add(int64(time.Since(start)))
}

// lock locks a mutex and counts the wait.
func (w *waitCounter) lock(mu *sync.Mutex) {
	if mu.TryLock() {
		return
	}
	start := time.Now()
	mu.Lock()
	w.add(start)
}
