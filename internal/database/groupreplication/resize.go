package groupreplication

import (
	"context"
	"errors"
	"fmt"

	"skerry/internal/database"
	"skerry/internal/database/mysql"
	"skerry/internal/machine/host"
)

var _ mysql.Group = (*cluster)(nil)

// Join implements database.Cluster.
//
//	START GROUP_REPLICATION   accepted: the group counts one member more
//	  recovery                a member sends what the new one lacks, from its binary logs
//	ONLINE                    complete: every member sees it so
func (c *cluster) Join(ctx context.Context, node host.Host) (database.Change, error) {
	return c.JoinGroup(ctx, node, c)
}

// Leave implements database.Cluster.
//
//	STOP GROUP_REPLICATION    accepted: the group counts one member less
//	SIGTERM                   complete: its process is gone, the others are ONLINE and have a primary
//
// A member that was lost sends no word: the others suspect it after 5 s and expel it
// group_replication_member_expel_timeout later, if they are a majority.
func (c *cluster) Leave(ctx context.Context, node host.Host, manner database.Manner) (database.Change, error) {
	return c.LeaveGroup(ctx, node, manner, c)
}

func (c *cluster) CheckAgreement(ctx context.Context, servers []*mysql.Server) error {
	return checkAgreement(ctx, servers)
}

func (c *cluster) CountMembers(ctx context.Context, by *mysql.Server) (int, error) {
	v, err := queryView(ctx, by)
	return len(v), err
}

func (c *cluster) Prepare(ctx context.Context, node host.Host) (*mysql.Server, error) {
	if len(c.All()) >= maxMembers {
		return nil, fmt.Errorf("%w: a group has at most %d members", database.ErrUnsupported, maxMembers)
	}
	s, err := mysql.NewServer(node, Name, c.options.port)
	if err != nil {
		return nil, err
	}
	if err := c.fill(ctx, s); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (c *cluster) Enter(ctx context.Context, s *mysql.Server, before []*mysql.Server, accepted func()) error {
	return c.admit(ctx, s, append(before, s), false, accepted)
}

// admit starts a server, adds it to the group or a new one, and waits until all members are ONLINE. It calls
// accepted when the group counts the server.
func (c *cluster) admit(ctx context.Context, s *mysql.Server, members []*mysql.Server, first bool, accepted func()) error {
	if !s.Running() {
		if err := c.launchOnTrial(ctx, s); err != nil {
			return err
		}
	}
	d := s.Server()
	if d == nil {
		return fmt.Errorf("%s was halted", s.Host.Name())
	}
	entering, cancel := context.WithTimeoutCause(ctx, joinTimeout, fmt.Errorf("not a member after %v", joinTimeout))
	defer cancel()
	if err := c.startReplication(entering, s, first); err != nil {
		return fmt.Errorf("%w%s", err, d.LastLines())
	}
	accepted()
	if err := d.Await(ctx, joinTimeout, func(ctx context.Context) error { return checkAgreement(ctx, members) }); err != nil {
		return err
	}
	s.MarkMember()
	return nil
}

func (c *cluster) launchOnTrial(ctx context.Context, s *mysql.Server) error {
	d, err := c.startServer(ctx, s)
	if err != nil {
		return err
	}
	s.MarkLeaving()
	return awaitAnswer(ctx, s, d)
}

func (c *cluster) EndMembership(ctx context.Context, s *mysql.Server, manner database.Manner, accepted func()) error {
	var err error
	switch {
	case manner == database.Abrupt:
		err = s.Halt(ctx, database.Abrupt)
	case s.Running():
		err = s.Exec(ctx, "STOP GROUP_REPLICATION")
	}
	if err != nil {
		return err
	}
	accepted()
	return s.Halt(ctx, database.Graceful)
}

// AwaitAgreement implements mysql.Group: the servers see each other and no others.
func (c *cluster) AwaitAgreement(ctx context.Context, servers []*mysql.Server) error {
	ctx, cancel := context.WithTimeoutCause(ctx, expelTimeout, fmt.Errorf("the others still count it after %v", expelTimeout))
	defer cancel()
	return c.Servers.Await(ctx, func(ctx context.Context) error { return checkAgreement(ctx, servers) })
}
