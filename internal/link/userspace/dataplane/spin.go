package dataplane

import (
	"sync/atomic"
	"time"
)

const (
	// spins is how often a lock is tried before its holder is taken for one that does not run.
	spins = 2000
	// spinNap is how long to sleep then: the holder may need this very processor.
	spinNap = int64(20 * time.Microsecond)
)

// spin is a lock for tens of nanoseconds between threads of the plane. A lock that parks
// would have the thread woken by the runtime, whose threads may have no processor.
//
// A holder whose processor is taken away keeps the others waiting, so that nothing is done
// under it that takes longer: no system call, no allocation of steady traffic.
type spin struct{ held atomic.Bool }

func (s *spin) lock() {
	for n := 1; !s.try(); n++ {
		if n%spins == 0 {
			sleepRaw(spinNap)
		}
	}
}

// try locks unless it is locked.
func (s *spin) try() bool { return !s.held.Load() && s.held.CompareAndSwap(false, true) }

func (s *spin) unlock() { s.held.Store(false) }
