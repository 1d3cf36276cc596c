package daemon

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"skerry/internal/database"
	"skerry/internal/machine/files"
)

// Member is a cluster's part on one node.
type Member interface {
	comparable
	// Name is the node's name.
	Name() string
}

// Cluster is the common part of all clusters: the environment, the server processes and the members.
type Cluster[M Member] struct {
	Env     database.Env
	Log     *slog.Logger // never nil
	Servers Set
	MemberList[M]

	name string // of the database

	installed installations
}

// NewCluster returns a cluster without members. Name is the database's.
func NewCluster[M Member](name string, env database.Env) *Cluster[M] {
	c := &Cluster[M]{Env: env, Log: env.Log, name: name}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// ReportProgress writes a line of progress for the user and to the log.
func (c *Cluster[M]) ReportProgress(format string, args ...any) {
	c.Env.ReportProgress(c.name, format, args...)
}

func (c *Cluster[M]) Failed() <-chan struct{} { return c.Servers.Failed() }

func (c *Cluster[M]) Err() error { return c.Servers.Err() }

func (c *Cluster[M]) Logs() map[string]files.File { return c.Servers.Logs() }

// MemberList holds the members of a cluster in the order in which they became members,
// halted ones included. A node may have several. The zero value is empty; it must not be
// copied.
type MemberList[M Member] struct {
	mu  sync.Mutex
	all []M

	changing sync.Mutex // held while a node joins, leaves, halts or is revived
}

func (l *MemberList[M]) beginChange() (release func(), err error) {
	if !l.changing.TryLock() {
		return nil, database.ErrBusy
	}
	return l.changing.Unlock, nil
}

// Hold returns the first member on a node and locks the list against other changes of membership
// until release is called. The error is ErrBusy during another change, or ErrNotMember.
func (l *MemberList[M]) Hold(node string) (m M, release func(), err error) {
	if release, err = l.beginChange(); err != nil {
		return m, nil, err
	}
	all := l.AllOn(node)
	if len(all) == 0 {
		release()
		return m, nil, database.ErrNotMember
	}
	return all[0], release, nil
}

// Vacant locks the list for a node that joins, until release is called. The error is ErrBusy or ErrMember.
func (l *MemberList[M]) Vacant(node string) (release func(), err error) {
	if release, err = l.beginChange(); err != nil {
		return nil, err
	}
	if len(l.AllOn(node)) > 0 {
		release()
		return nil, database.ErrMember
	}
	return release, nil
}

// Add appends a member.
func (l *MemberList[M]) Add(m M) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, m)
}

// Drop removes a member; a missing one is no error.
func (l *MemberList[M]) Drop(m M) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(o M) bool { return o == m })
}

// All returns a copy of the list.
func (l *MemberList[M]) All() []M {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// Select returns the members for which match is true.
func (l *MemberList[M]) Select(match func(M) bool) []M {
	return slices.DeleteFunc(l.All(), func(m M) bool { return !match(m) })
}

// AllOn returns the members on a node.
func (l *MemberList[M]) AllOn(node string) []M {
	return l.Select(func(m M) bool { return m.Name() == node })
}

// On returns the first member on a node, the zero M if there is none.
func (l *MemberList[M]) On(node string) (m M) {
	if on := l.AllOn(node); len(on) > 0 {
		return on[0]
	}
	return m
}

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

// MarkHalted marks the member as halted and reports whether it was not before. It ends no process.
func (s *Seat) MarkHalted() bool { return s.halted.CompareAndSwap(false, true) }

// Halt ends the process with SIGTERM or, abruptly, with SIGKILL, unless it is halted already.
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
