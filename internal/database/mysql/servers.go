package mysql

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
)

// Cluster is a cluster of servers, with what every database of the family does in the same way.
type Cluster struct{ *daemon.Cluster[*Server] }

// NewCluster returns a cluster without servers.
func NewCluster(env database.Env, kind string) *Cluster {
	return &Cluster{daemon.NewCluster[*Server](kind, env)}
}

// Remove forgets a server and ends its process.
func (s *Cluster) Remove(ctx context.Context, server *Server) error {
	s.Drop(server)
	return errors.Join(server.Halt(ctx, database.Abrupt), server.Close())
}

// Running are those whose process runs.
func (s *Cluster) Running() []*Server {
	return s.Select((*Server).Running)
}

// Others are those that run, without one.
func (s *Cluster) Others(than *Server) []*Server {
	return s.Select(func(o *Server) bool { return o != than && o.Running() })
}

// Member is the server on a node, or an error that wraps database.ErrNotMember.
func (s *Cluster) Member(doing string, node host.Host) (*Server, error) {
	if o := s.On(node.Name()); o != nil {
		return o, nil
	}
	return nil, fmt.Errorf("%s %s: %w", doing, node.Name(), database.ErrNotMember)
}

// Addrs are where the servers take clients, in the order of their nodes, separated by
// commas.
func (s *Cluster) Addrs() string {
	var addrs []string
	for _, o := range s.All() {
		addrs = append(addrs, o.Addr())
	}
	return strings.Join(addrs, ",")
}

// Kill ends what a start that failed left: servers that wait for each other would not
// heed SIGTERM.
func (s *Cluster) Kill(ctx context.Context) error {
	var err error
	for _, o := range s.All() {
		err = errors.Join(err, o.Halt(ctx, database.Abrupt))
	}
	return errors.Join(err, s.Stop(ctx))
}

// Stop implements database.Cluster.
func (s *Cluster) Stop(ctx context.Context) error {
	err := s.Servers.Stop(ctx)
	for _, o := range s.All() {
		err = errors.Join(err, o.Close())
	}
	return err
}

// FindServing answers with the first server that runs and serves, as the given question finds.
func (s *Cluster) FindServing(ctx context.Context, serves func(context.Context, *Server) error) (*Server, error) {
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
