package mysql

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/load"
	"skerry/internal/machine/host"
)

// Errors of a group whose running members cannot continue alone.
var (
	// ErrBehind means that another member has later transactions.
	ErrBehind = errors.New("another member has later transactions")
	// ErrNoGroup means that the running members are in no group.
	ErrNoGroup = errors.New("the members that run are in no group")
	// ErrRuns means that a member was not halted.
	ErrRuns = errors.New("it runs")
)

// Group is a group of equal servers in which a majority decides.
type Group interface {
	// CheckAgreement returns nil if the servers serve, and count each other and no others.
	CheckAgreement(ctx context.Context, servers []*Server) error
	// CountMembers returns the size of the group as one of its servers sees it.
	CountMembers(ctx context.Context, by *Server) (int, error)
	// FindServing returns a server that sees everything committed, and accepts writes.
	FindServing(ctx context.Context) (*Server, error)
	// DescribeState returns a server's own state, and whether it serves.
	DescribeState(ctx context.Context, s *Server) (state string, serves bool, err error)
	// Prepare creates a server that will join and fills its directory. It starts no process.
	Prepare(ctx context.Context, node host.Host) (*Server, error)
	// Enter starts a server that joins the servers before, and returns when all agree. It calls accepted when the
	// servers count it.
	Enter(ctx context.Context, s *Server, before []*Server, accepted func()) error
	// EndMembership ends a server's membership and its process. It calls accepted when the group knows.
	EndMembership(ctx context.Context, s *Server, manner database.Manner, accepted func()) error
	// AwaitAgreement waits until the running servers have given up all others.
	AwaitAgreement(ctx context.Context, running []*Server) error
	// Restore starts a halted member again behind the running ones, or begins the group from it if none runs. It
	// fails with ErrBehind or ErrNoGroup if the group must begin again from another choice of members.
	Restore(ctx context.Context, s *Server) error
	// Restart begins the group again from the most advanced of s and the running servers; none of them serves.
	Restart(ctx context.Context, s *Server, running []*Server) error
}

// GroupCluster implements membership, halts and status of a database whose servers are a Group.
type GroupCluster struct {
	*Cluster
	group   Group
	driver  *Driver
	session string
}

// NewGroupCluster returns a cluster without servers. SetGroup must follow. Session sets variables that let a member
// without a majority answer a client of its own copy.
func NewGroupCluster(env database.Env, driver *Driver, session string) *GroupCluster {
	return &GroupCluster{Cluster: NewCluster(env, driver.Kind), driver: driver, session: session}
}

// SetGroup sets the group, before any other use.
func (s *GroupCluster) SetGroup(group Group) { s.group = group }

func (s *GroupCluster) Join(ctx context.Context, node host.Host) (database.Change, error) {
	var before []*Server
	var server *Server
	return s.RunJoin(ctx, node, daemon.JoinSteps{
		Check: func(ctx context.Context) error {
			before = s.Running()
			return s.group.CheckAgreement(ctx, before)
		},
		Join: func(ctx context.Context, timer *daemon.ChangeTimer) (err error) {
			if server, err = s.group.Prepare(ctx, node); err != nil {
				return err
			}
			s.Add(server)
			if err := s.group.Enter(ctx, server, before, timer.Accept); err != nil {
				return err
			}
			server.MarkMember()
			return nil
		},
		Undo: func(ctx context.Context) error {
			if server == nil {
				return nil
			}
			return s.removeServer(ctx, server)
		},
	})
}

func (s *GroupCluster) removeServer(ctx context.Context, server *Server) error {
	if err := s.Remove(ctx, server); err != nil {
		return err
	}
	return s.group.AwaitAgreement(ctx, s.Running())
}

func (s *GroupCluster) Leave(ctx context.Context, node host.Host, manner database.Manner) (database.Change, error) {
	return s.RunLeave(ctx, node, daemon.LeaveSteps[*Server]{
		Check: func(ctx context.Context, server *Server) error { return s.checkLeave(ctx, server, manner) },
		Leave: func(ctx context.Context, server *Server, timer *daemon.ChangeTimer) error {
			if err := s.group.EndMembership(ctx, server, manner, timer.Accept); err != nil {
				return err
			}
			return s.removeServer(ctx, server)
		},
	})
}

// checkLeave refuses the leave of the last member, and an abrupt one that leaves no majority.
func (s *GroupCluster) checkLeave(ctx context.Context, server *Server, manner database.Manner) error {
	rest := s.Others(server)
	if len(rest) == 0 {
		return fmt.Errorf("%w: it is the last", database.ErrFixed)
	}
	if !server.Running() || manner == database.Graceful {
		return nil
	}
	n, err := s.group.CountMembers(ctx, rest[0])
	if err != nil {
		return err
	}
	if 2*len(rest) <= n {
		return fmt.Errorf("%w: %d of %d members would be no majority", database.ErrFixed, len(rest), n)
	}
	return nil
}

// Halt implements database.Cluster. After SIGTERM the others know at once; after SIGKILL they must detect it.
func (s *GroupCluster) Halt(ctx context.Context, node host.Host, manner database.Manner) error {
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

// Revive implements database.Cluster. If no member runs, the group begins again from this one, which is refused if
// another has later transactions.
//
// The running members may be no majority, and lack writes that were acknowledged without them:
//
//  1. n1 is cut off. n2 and n3 continue, commit a write and are killed. n1 returns without it.
//  2. n2 is revived. If n1 were made the group alone, the write would be lost, and n2 would differ from it without
//     an error (Galera) or could never rejoin (Group Replication).
//
// So the running members become the group only if no halted member is ahead of them. Otherwise they, which serve
// nothing, are stopped, and the group begins again from the most advanced member.
func (s *GroupCluster) Revive(ctx context.Context, node host.Host) error {
	server, err := s.Member("reviving", node)
	if err != nil {
		return err
	}
	if server.Running() {
		return fmt.Errorf("reviving %s: %w", node.Name(), ErrRuns)
	}
	s.ReportProgress("reviving %s", node.Name())
	running := s.Running()
	err = s.group.Restore(ctx, server)
	if len(running) > 0 && cannotContinue(err) {
		err = s.group.Restart(ctx, server, running)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("reviving %s: %w", node.Name(), err), server.Halt(context.WithoutCancel(ctx), database.Abrupt))
	}
	return nil
}

func cannotContinue(err error) bool { return errors.Is(err, ErrBehind) || errors.Is(err, ErrNoGroup) }

// Behind returns ErrBehind with the member that is ahead and its position.
func Behind(ahead *Server, what string) error {
	return advice.With(fmt.Errorf("%w: %s has %s", ErrBehind, ahead.Host.Name(), what), "revive %s first", ahead.Host.Name())
}

const giveUpTimeout = 2 * time.Minute

// AwaitGivenUp repeats ask until it succeeds, giveUpTimeout is over, or the group cannot continue: ErrBehind or
// ErrNoGroup.
func (s *GroupCluster) AwaitGivenUp(ctx context.Context, ask func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, giveUpTimeout, fmt.Errorf("the others still count it after %v", giveUpTimeout))
	defer cancel()
	ctx, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	return s.Servers.Await(ctx, func(ctx context.Context) error {
		err := ask(ctx)
		if cannotContinue(err) {
			refuse(err)
		}
		return err
	})
}

func (s *GroupCluster) Ready(ctx context.Context) error {
	for _, o := range s.All() {
		if !o.Running() {
			return fmt.Errorf("%s does not run", o.Host.Name())
		}
	}
	return s.group.CheckAgreement(ctx, s.All())
}

func (s *GroupCluster) Members(ctx context.Context) ([]database.Member, error) {
	servers := s.All()
	members := make([]database.Member, len(servers))
	err := daemon.ForEach(ctx, servers, func(ctx context.Context, i int, o *Server) error {
		members[i] = database.Member{Node: o.Host.Name(), State: "down"}
		if !o.Running() {
			return nil
		}
		state, serves, err := s.group.DescribeState(ctx, o)
		if err != nil {
			members[i].State = "silent"
			return ctx.Err()
		}
		if members[i].State = state; !serves {
			return nil
		}
		members[i].Share = 1
		members[i].Rows, err = o.Count(ctx, "")
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("querying the members: %w", err)
	}
	return members, nil
}

func (s *GroupCluster) OpenMember(ctx context.Context, node string) (load.Client, error) {
	server := s.On(node)
	if server == nil {
		return nil, fmt.Errorf("reading the copy of %s: %w", node, database.ErrNotMember)
	}
	return s.driver.OpenMember(ctx, server, s.session)
}

func (s *GroupCluster) Clear(ctx context.Context) error {
	server, err := s.group.FindServing(ctx)
	if err != nil {
		return fmt.Errorf("clearing the table: %w", err)
	}
	return server.Clear(ctx)
}
