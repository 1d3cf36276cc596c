package mysql

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// Servers are the servers of a cluster, halted ones too, with what every cluster of the
// family does in the same way. It must not be copied.
type Servers struct {
	Env  database.Env
	Kind string
	Log  *slog.Logger
	// Set watches the processes.
	Set daemon.Set
	// Changing is held while a node joins or leaves.
	Changing database.Changing

	mu  sync.Mutex
	all []*Server
}

// NewServers is a cluster's servers: none yet.
func NewServers(env database.Env, kind string) *Servers {
	s := &Servers{Env: env, Kind: kind, Log: env.Log}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	return s
}

// Say tells a person and the log what is going on.
func (s *Servers) Say(format string, args ...any) {
	s.Env.Say(s.Kind, format, args...)
}

// Add takes a server in.
func (s *Servers) Add(server *Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, server)
}

// Remove forgets a server and ends its process.
func (s *Servers) Remove(ctx context.Context, server *Server) error {
	s.mu.Lock()
	s.all = slices.DeleteFunc(s.all, func(o *Server) bool { return o == server })
	s.mu.Unlock()
	return errors.Join(server.Halt(ctx, true), server.Close())
}

// All are the servers at this moment.
func (s *Servers) All() []*Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// Running are those whose process runs.
func (s *Servers) Running() []*Server {
	return slices.DeleteFunc(s.All(), func(o *Server) bool { return !o.Running() })
}

// Others are those that run, without one.
func (s *Servers) Others(than *Server) []*Server {
	return slices.DeleteFunc(s.Running(), func(o *Server) bool { return o == than })
}

// On is the server on a node, nil when there is none.
func (s *Servers) On(node string) *Server {
	for _, o := range s.All() {
		if o.Host.Name() == node {
			return o
		}
	}
	return nil
}

// Member is the server on a node, or an error that wraps database.ErrNotMember.
func (s *Servers) Member(doing string, node host.Host) (*Server, error) {
	if o := s.On(node.Name()); o != nil {
		return o, nil
	}
	return nil, fmt.Errorf("%s %s: %w", doing, node.Name(), database.ErrNotMember)
}

// Addrs are where the servers take clients, in the order of their nodes, separated by
// commas.
func (s *Servers) Addrs() string {
	var addrs []string
	for _, o := range s.All() {
		addrs = append(addrs, o.Addr())
	}
	return strings.Join(addrs, ",")
}

// Failed implements database.Cluster.
func (s *Servers) Failed() <-chan struct{} { return s.Set.Failed() }

// Err implements database.Cluster.
func (s *Servers) Err() error { return s.Set.Err() }

// Logs implements database.Cluster.
func (s *Servers) Logs() map[string]files.File { return s.Set.Logs() }

// Abandon ends what a start that failed left: servers that wait for each other would not
// heed SIGTERM.
func (s *Servers) Abandon(ctx context.Context) error {
	var err error
	for _, o := range s.All() {
		err = errors.Join(err, o.Halt(ctx, true))
	}
	return errors.Join(err, s.Stop(ctx))
}

// Stop implements database.Cluster.
func (s *Servers) Stop(ctx context.Context) error {
	err := s.Set.Stop(ctx)
	for _, o := range s.All() {
		err = errors.Join(err, o.Close())
	}
	return err
}

// First answers with the first server that runs and serves, as the given question finds.
func (s *Servers) First(ctx context.Context, serves func(context.Context, *Server) error) (*Server, error) {
	err := errNone
	for _, o := range s.Running() {
		e := serves(ctx, o)
		if e == nil {
			return o, nil
		}
		err = errors.Join(err, e)
	}
	return nil, err
}
