package groupreplication

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/database/mysql"
	"skerry/internal/machine/host"
)

// ErrBehind means that another member has more transactions.
var ErrBehind = errors.New("another member has transactions that it lacks")

// errNoGroup means that the running members are in no group.
var errNoGroup = errors.New("the members that run are in no group")

// errRuns means that a member was not halted.
var errRuns = errors.New("it runs")

// Revive implements database.Cluster. A returning member is new to the group, so the others must
// first have given up the old one. If no member runs, the group begins again from this one, which
// is refused if another has more transactions.
//
// The running members may be no majority and lack writes that were acknowledged without them, or
// may have been expelled from a group that has ended. They serve nothing then, and the group
// begins again from the member that has most, running or revived. If they were made the group
// alone, such a write would be lost, and a member that has it could never rejoin.
func (c *cluster) Revive(ctx context.Context, node host.Host) error {
	s, err := c.Member("reviving", node)
	if err != nil {
		return err
	}
	if s.Running() {
		return fmt.Errorf("reviving %s: %w", node.Name(), errRuns)
	}
	c.ReportProgress("reviving %s", node.Name())
	running := c.Running()
	err = c.revive(ctx, s)
	if len(running) > 0 && (errors.Is(err, ErrBehind) || errors.Is(err, errNoGroup)) {
		err = c.restartGroup(ctx, append(running, s))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("reviving %s: %w", node.Name(), err), s.Halt(context.WithoutCancel(ctx), database.Abrupt))
	}
	return nil
}

func (c *cluster) revive(ctx context.Context, s *mysql.Server) error {
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

// restartGroup begins the group again from the member with all transactions. None of the members serves.
func (c *cluster) restartGroup(ctx context.Context, members []*mysql.Server) error {
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
		if !errors.Is(behind, ErrBehind) {
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

// awaitExpelled waits until the running members have given up the others. Members without a
// majority cannot do that: they are made the group as an operator would do it, unless a halted
// member has more transactions (ErrBehind). Expelled members are in no group (errNoGroup).
func (c *cluster) awaitExpelled(ctx context.Context, running []*mysql.Server) error {
	ctx, cancel := context.WithTimeoutCause(ctx, expelTimeout, fmt.Errorf("the others still count it after %v", expelTimeout))
	defer cancel()
	ctx, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	return c.Servers.Await(ctx, func(ctx context.Context) error {
		v, err := queryView(ctx, running[0])
		if err != nil {
			return err
		}
		if lacksMajority(v) {
			err = c.forceMembers(ctx, running)
		} else {
			err = checkInGroup(ctx, running)
		}
		if errors.Is(err, ErrBehind) || errors.Is(err, errNoGroup) {
			refuse(err)
		}
		if err != nil {
			return err
		}
		return checkAgreement(ctx, running)
	})
}

// forceMembers makes servers without a majority the group.
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

// checkInGroup returns errNoGroup if each server sees itself alone and does not serve.
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
	return errNoGroup
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
			return advice.With(fmt.Errorf("%w: %s has %s", ErrBehind, o.Host.Name(), set), "revive %s first", o.Host.Name())
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
