package daemon

import (
	"context"
	"sync/atomic"

	"skerry/internal/database"
)

// Seat is where a member's server runs, one after the other as it is halted and revived. The
// zero Seat has had none; it must not be copied.
type Seat struct {
	server atomic.Pointer[Daemon]
	halted atomic.Bool
}

// Started says that a server runs there from now on.
func (s *Seat) Started(d *Daemon) {
	s.server.Store(d)
	s.halted.Store(false)
}

// Server is the one that runs, or ran last; nil before the first.
func (s *Seat) Server() *Daemon { return s.server.Load() }

// Halted tells whether the server was ended, and none was started since.
func (s *Seat) Halted() bool { return s.halted.Load() }

// Halt ends the server: with SIGTERM or, abruptly, with SIGKILL. One that is halted already
// is left alone.
func (s *Seat) Halt(ctx context.Context, manner database.Manner) error {
	d := s.server.Load()
	if s.halted.Swap(true) || d == nil {
		return nil
	}
	if manner == database.Abrupt {
		return d.Kill()
	}
	return d.Stop(ctx)
}
