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

// Cluster is a cluster of servers with the parts that all databases of the family share.
type Cluster struct{ *daemon.Cluster[*Server] }

// NewCluster returns a cluster without servers.
func NewCluster(env database.Env, kind string) *Cluster {
	return &Cluster{daemon.NewCluster[*Server](kind, env)}
}

// Remove removes a server from the cluster and kills its process.
func (s *Cluster) Remove(ctx context.Context, server *Server) error {
	s.Drop(server)
	return errors.Join(server.Halt(ctx, database.Abrupt), server.Close())
}

// Running returns the servers whose process runs.
func (s *Cluster) Running() []*Server {
	return s.Select((*Server).Running)
}

// Others returns the running servers without one.
func (s *Cluster) Others(than *Server) []*Server {
	return s.Select(func(o *Server) bool { return o != than && o.Running() })
}

// Member returns the server on a node, or an error that wraps database.ErrNotMember.
func (s *Cluster) Member(doing string, node host.Host) (*Server, error) {
	if o := s.On(node.Name()); o != nil {
		return o, nil
	}
	return nil, fmt.Errorf("%s %s: %w", doing, node.Name(), database.ErrNotMember)
}

// Addrs returns the client addresses of the servers, comma-separated, in node order.
func (s *Cluster) Addrs() string {
	var addrs []string
	for _, o := range s.All() {
		addrs = append(addrs, o.Addr())
	}
	return strings.Join(addrs, ",")
}

// Kill ends a cluster whose start failed. Servers that wait for each other ignore SIGTERM.
func (s *Cluster) Kill(ctx context.Context) error {
	var err error
	for _, o := range s.All() {
		err = errors.Join(err, o.Halt(ctx, database.Abrupt))
	}
	return errors.Join(err, s.Stop(ctx))
}

func (s *Cluster) Stop(ctx context.Context) error {
	err := s.Servers.Stop(ctx)
	for _, o := range s.All() {
		err = errors.Join(err, o.Close())
	}
	return err
}

// FirstServing returns the first running server for which serves returns nil.
func (s *Cluster) FirstServing(ctx context.Context, serves func(context.Context, *Server) error) (*Server, error) {
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
