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

// Stop implements database.Cluster.
func (s *Cluster) Stop(ctx context.Context) error {
	err := s.Servers.Stop(ctx)
	for _, o := range s.All() {
		err = errors.Join(err, o.Close())
	}
	return err
}

// FindServing returns the first running server for which serves returns nil.
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

// Group is a group of equal servers in which a majority decides.
type Group interface {
	// CheckAgreement returns nil if the servers serve, and count each other and no others.
	CheckAgreement(ctx context.Context, servers []*Server) error
	// CountMembers returns the size of the group as one of its servers sees it.
	CountMembers(ctx context.Context, by *Server) (int, error)
	// Prepare creates a server that will join and fills its directory. It starts no process.
	Prepare(ctx context.Context, node host.Host) (*Server, error)
	// Enter starts a server that joins the servers before, and returns when all agree. It calls accepted when the
	// servers count it.
	Enter(ctx context.Context, s *Server, before []*Server, accepted func()) error
	// EndMembership ends a server's membership and its process. It calls accepted when the group knows.
	EndMembership(ctx context.Context, s *Server, manner database.Manner, accepted func()) error
	// AwaitAgreement waits until the running servers have given up all others.
	AwaitAgreement(ctx context.Context, running []*Server) error
}

// JoinGroup implements database.Cluster's Join for a Group.
func (s *Cluster) JoinGroup(ctx context.Context, node host.Host, group Group) (database.Change, error) {
	var before []*Server
	var server *Server
	return s.RunJoin(ctx, node, daemon.JoinSteps{
		Check: func(ctx context.Context) error {
			before = s.Running()
			return group.CheckAgreement(ctx, before)
		},
		Join: func(ctx context.Context, timer *daemon.ChangeTimer) (err error) {
			if server, err = group.Prepare(ctx, node); err != nil {
				return err
			}
			s.Add(server)
			if err := group.Enter(ctx, server, before, timer.Accept); err != nil {
				return err
			}
			server.MarkMember()
			return nil
		},
		Undo: func(ctx context.Context) error {
			if server == nil {
				return nil
			}
			return s.removeServer(ctx, server, group)
		},
	})
}

// removeServer ends a server and waits until the others continue without it.
func (s *Cluster) removeServer(ctx context.Context, server *Server, group Group) error {
	if err := s.Remove(ctx, server); err != nil {
		return err
	}
	return group.AwaitAgreement(ctx, s.Running())
}

// LeaveGroup implements database.Cluster's Leave for a Group.
func (s *Cluster) LeaveGroup(ctx context.Context, node host.Host, manner database.Manner, group Group) (database.Change, error) {
	return s.RunLeave(ctx, node, daemon.LeaveSteps[*Server]{
		Check: func(ctx context.Context, server *Server) error { return s.checkLeave(ctx, server, manner, group) },
		Leave: func(ctx context.Context, server *Server, timer *daemon.ChangeTimer) error {
			if err := group.EndMembership(ctx, server, manner, timer.Accept); err != nil {
				return err
			}
			return s.removeServer(ctx, server, group)
		},
	})
}

// checkLeave refuses the leave of the last member, and an abrupt one that leaves no majority.
func (s *Cluster) checkLeave(ctx context.Context, server *Server, manner database.Manner, group Group) error {
	rest := s.Others(server)
	if len(rest) == 0 {
		return fmt.Errorf("%w: it is the last", database.ErrFixed)
	}
	if !server.Running() || manner == database.Graceful {
		return nil
	}
	n, err := group.CountMembers(ctx, rest[0])
	if err != nil {
		return err
	}
	if 2*len(rest) <= n {
		return fmt.Errorf("%w: %d of %d members would be no majority", database.ErrFixed, len(rest), n)
	}
	return nil
}

// Halt implements database.Cluster. After SIGTERM the others know at once; after SIGKILL they must detect it.
func (s *Cluster) Halt(ctx context.Context, node host.Host, manner database.Manner) error {
	server, err := s.Member("halting", node)
	if err != nil {
		return err
	}
	s.ReportProgress("halting %s (%s)", node.Name(), manner)
	if err := server.Halt(ctx, manner); err != nil {
		return fmt.Errorf("halting %s: %w", node.Name(), err)
	}
	return nil
}
