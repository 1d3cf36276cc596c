package daemon

import (
	"context"
	"sync/atomic"

	"skerry/internal/database"
)

// Seat holds a member's server process: the running one, or the last one while the member is
// halted. Member types embed it. The zero Seat has had no server; it must not be copied.
type Seat struct {
	server atomic.Pointer[Daemon]
	halted atomic.Bool
}

// SetServer records a new server process and ends the halt.
func (s *Seat) SetServer(d *Daemon) {
	s.server.Store(d)
	s.halted.Store(false)
}

// Server returns the running or last process, nil before the first.
func (s *Seat) Server() *Daemon { return s.server.Load() }

// Running reports whether a process was started and has not ended.
func (s *Seat) Running() bool {
	d := s.server.Load()
	return d != nil && d.Running()
}

// Halted reports whether the process was ended by Halt, or by the owner after MarkHalted.
func (s *Seat) Halted() bool { return s.halted.Load() }

// MarkHalted marks the member as halted and reports whether it was not before. The caller ends
// the process.
func (s *Seat) MarkHalted() bool { return s.halted.CompareAndSwap(false, true) }

// Halt ends the process with SIGTERM or, abruptly, with SIGKILL. It does nothing if the member
// is halted or has had no process.
func (s *Seat) Halt(ctx context.Context, manner database.Manner) error {
	d := s.server.Load()
	if !s.MarkHalted() || d == nil {
		return nil
	}
	return d.Halt(ctx, manner)
}

// Kill ends the process with SIGKILL, if there is one. The member is not marked as halted.
func (s *Seat) Kill() error {
	if d := s.server.Load(); d != nil {
		return d.Kill()
	}
	return nil
}
