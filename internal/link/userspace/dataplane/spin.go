package dataplane

import (
	"sync/atomic"
	"time"
)

const (
	// spins is the number of tries before the holder is assumed not to run.
	spins = 2000
	// spinNap is the sleep after that: the holder may need this processor.
	spinNap = int64(20 * time.Microsecond)
)

// spin is a lock between packet threads that is held for tens of nanoseconds. A parking lock would depend on
// runtime threads, which may have no processor.
//
// A holder that loses its processor blocks the others. So nothing slow happens under the lock: no system call,
// and no allocation for steady traffic.
type spin struct{ held atomic.Bool }

func (s *spin) lock() {
	for n := 1; !s.try(); n++ {
		if n%spins == 0 {
			sleepRaw(spinNap)
		}
	}
}

// try acquires the lock if it is free.
func (s *spin) try() bool { return !s.held.Load() && s.held.CompareAndSwap(false, true) }

func (s *spin) unlock() { s.held.Store(false) }
