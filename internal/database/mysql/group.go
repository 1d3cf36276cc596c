package mysql

import (
	"context"
	"fmt"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
)

// Group are servers that form a group in which all are alike and a majority decides: what
// the databases of that kind do each in their own way.
type Group interface {
	// Agree returns nil when servers serve, and count each other and nobody else.
	CheckAgreement(ctx context.Context, servers []*Server) error
	// Counted is how many members the group has, to a server of it.
	CountMembers(ctx context.Context, by *Server) (int, error)
	// Make prepares a server that is to join, its directory filled; nothing of it runs.
	Prepare(ctx context.Context, node host.Host) (*Server, error)
	// Enter starts a server and has it join those that were there before. It calls accepted
	// when they count it, and returns when all agree.
	Enter(ctx context.Context, s *Server, before []*Server, accepted func()) error
	// Part ends a member's part in the group, and its process. It calls accepted when the
	// group has been told, or the process of a member that is lost has ended.
	EndMembership(ctx context.Context, s *Server, manner database.Manner, accepted func()) error
	// Settle waits until the servers given, which run, have given up whoever does not.
	AwaitAgreement(ctx context.Context, running []*Server) error
}

// JoinGroup is database.Cluster's Join of a group of equals.
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

// removeServer ends a server and waits until the others go on without it.
func (s *Cluster) removeServer(ctx context.Context, server *Server, group Group) error {
	if err := s.Remove(ctx, server); err != nil {
		return err
	}
	return group.AwaitAgreement(ctx, s.Running())
}

// LeaveGroup is database.Cluster's Leave of a group of equals.
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

// checkLeave refuses to end a group: its last member stays, and so does one without whom the
// others would be no majority of those that were there.
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

// Halt implements database.Cluster for a group of equals. After SIGTERM the others know at
// once that it left; after SIGKILL they find out.
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
