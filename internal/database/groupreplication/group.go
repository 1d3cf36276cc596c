package groupreplication

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"skerry/internal/database"
	"skerry/internal/database/mysql"
	"skerry/internal/machine/host"
)

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

// Enter implements mysql.Group:
//
//	START GROUP_REPLICATION   accepted: the group counts one member more
//	  recovery                a member sends what the new one lacks, from its binary logs
//	ONLINE                    every member sees it so
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
	if err := d.Await(ctx, joinTimeout, func(ctx context.Context) error { return c.CheckAgreement(ctx, members) }); err != nil {
		return err
	}
	s.MarkMember()
	return nil
}

func (c *cluster) launchOnTrial(ctx context.Context, s *mysql.Server) error {
	d, err := s.StartMySQL(ctx, &c.Servers, c.Env.Installation, groupPort)
	if err != nil {
		return err
	}
	s.MarkLeaving()
	return s.AwaitAnswer(ctx, d, upTimeout)
}

// EndMembership implements mysql.Group:
//
//	STOP GROUP_REPLICATION    accepted: the group counts one member less
//	SIGTERM                   its process is gone
//
// The others suspect a lost member after 5 s and expel it group_replication_member_expel_timeout later, if they
// are a majority.
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

func (c *cluster) AwaitAgreement(ctx context.Context, servers []*mysql.Server) error {
	return c.AwaitGivenUp(ctx, func(ctx context.Context) error { return c.CheckAgreement(ctx, servers) })
}

// Restore implements mysql.Group. A returning member is new to the group, so the others must first have given up
// the old one.
func (c *cluster) Restore(ctx context.Context, s *mysql.Server) error {
	others := c.Running()
	if len(others) == 0 {
		if err := c.launchOnTrial(ctx, s); err != nil {
			return err
		}
		if err := c.checkMostAdvanced(ctx, s); err != nil {
			return err
		}
	} else if err := c.awaitExpelled(ctx, others); err != nil {
		return err
	}
	return c.admit(ctx, s, append(others, s), len(others) == 0, func() {})
}

func (c *cluster) Restart(ctx context.Context, s *mysql.Server, running []*mysql.Server) error {
	members := append(running, s)
	var behind error
	for i, first := range members {
		if !first.Running() {
			if err := c.launchOnTrial(ctx, first); err != nil {
				return err
			}
		}
		if behind = c.checkMostAdvanced(ctx, first); behind == nil {
			members[0], members[i] = first, members[0]
			break
		}
		if !errors.Is(behind, mysql.ErrBehind) {
			return behind
		}
	}
	if behind != nil {
		return behind
	}
	c.ReportProgress("the members that run are no majority: beginning the group from %s, which has most", members[0].Host.Name())
	for _, s := range members { // SIGTERM would wait for a group that does not answer
		if err := s.Halt(ctx, database.Abrupt); err != nil {
			return fmt.Errorf("stopping %s: %w", s.Host.Name(), err)
		}
	}
	for i, s := range members {
		if err := c.admit(ctx, s, members[:i+1], i == 0, func() {}); err != nil {
			return errors.Join(fmt.Errorf("starting %s again: %w", s.Host.Name(), err), s.Halt(context.WithoutCancel(ctx), database.Abrupt))
		}
	}
	return nil
}

// awaitExpelled waits until the running members have given up the others. Members without a majority cannot do
// that: they are made the group as an operator would do it, unless a halted member has more transactions.
func (c *cluster) awaitExpelled(ctx context.Context, running []*mysql.Server) error {
	return c.AwaitGivenUp(ctx, func(ctx context.Context) error {
		v, err := queryView(ctx, running[0])
		if err != nil {
			return err
		}
		if lacksMajority(v) {
			err = c.forceMembers(ctx, running)
		} else {
			err = checkInGroup(ctx, running)
		}
		if err != nil {
			return err
		}
		return c.CheckAgreement(ctx, running)
	})
}

func (c *cluster) forceMembers(ctx context.Context, servers []*mysql.Server) error {
	if err := c.checkMostAdvanced(ctx, servers...); err != nil {
		return err
	}
	var members []string
	for _, s := range servers {
		members = append(members, groupAddr(s))
	}
	c.ReportProgress("the members that run are no majority: making them the group (group_replication_force_members)")
	for _, list := range []string{strings.Join(members, ","), ""} {
		if err := servers[0].Exec(ctx, "SET GLOBAL group_replication_force_members = '"+list+"'"); err != nil {
			return err
		}
	}
	return nil
}

func lacksMajority(view []member) bool {
	lost := 0
	for _, m := range view {
		if m.state == "UNREACHABLE" {
			lost++
		}
	}
	return lost > 0 && 2*lost >= len(view)
}

// checkInGroup returns mysql.ErrNoGroup if each server sees itself alone and does not serve.
func checkInGroup(ctx context.Context, servers []*mysql.Server) error {
	for _, s := range servers {
		v, err := queryView(ctx, s)
		if err != nil {
			return err
		}
		if len(v) != 1 || v[0].state != "ERROR" && v[0].state != "OFFLINE" {
			return nil
		}
	}
	return mysql.ErrNoGroup
}

// checkMostAdvanced returns nil if no member has a transaction that all the running servers lack.
// Received but unapplied transactions do not count: a restarted server may have lost them.
func (c *cluster) checkMostAdvanced(ctx context.Context, servers ...*mysql.Server) error {
	var sets []string
	for _, s := range servers {
		set, err := c.queryExecuted(ctx, s)
		if err != nil {
			return err
		}
		sets = append(sets, set)
	}
	for _, o := range c.All() {
		if slices.Contains(servers, o) {
			continue
		}
		set, err := c.queryExecuted(ctx, o)
		if err != nil {
			return err
		}
		has, err := servers[0].Query(ctx, "SELECT GTID_SUBSET(?, ?)", set, strings.Join(sets, ","))
		if err != nil {
			return err
		}
		if has[0][0] != "1" {
			return mysql.Behind(o, set)
		}
	}
	return nil
}

// queryExecuted returns a member's executed transactions. It starts a halted member, in no group, for the query.
func (c *cluster) queryExecuted(ctx context.Context, s *mysql.Server) (set string, err error) {
	if !s.Running() {
		if err := c.launchOnTrial(ctx, s); err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, s.Halt(ctx, database.Graceful)) }()
	}
	rows, err := s.Query(ctx, "SELECT @@GLOBAL.gtid_executed")
	if err != nil {
		return "", err
	}
	return rows[0][0], nil
}
