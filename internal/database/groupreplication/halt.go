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

// ErrBehind says that a group is not to be begun from a member: another one has more.
var ErrBehind = errors.New("another member has transactions that it lacks")

// errNoGroup says that the members that run have none.
var errNoGroup = errors.New("the members that run are in no group")

// errRuns says that a member was not halted.
var errRuns = errors.New("it runs")

// Revive implements database.Cluster. A member that comes back is a new one to the group:
// the others must have given up the old one first. When no member runs, the group begins
// anew from this one, which is refused if another has more.
//
// Those that run may be no majority and lack what was acknowledged without them, or be out of
// the group, which gave them up before it ended. They serve nothing then, and the group begins
// anew from whichever of them and this one has most. Were they told to go on alone, the write
// would be gone, and whoever has it would never be let in again.
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

// restartGroup begins the group again with members of whom none serves, from one that has all that any
// member has.
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

// awaitExpelled waits until members that run have given up those that do not. Members that are
// no majority cannot do so: they are told to go on alone, as an operator would tell them,
// unless one that is halted has more than they (ErrBehind). Those that the group gave up
// have none (errNoGroup).
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

// forceMembers makes servers, which are no majority, the group.
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

// lacksMajority tells whether half of a view's members or more cannot be reached.
func lacksMajority(view []member) bool {
	lost := 0
	for _, m := range view {
		if m.state == "UNREACHABLE" {
			lost++
		}
	}
	return lost > 0 && 2*lost >= len(view)
}

// checkInGroup returns errNoGroup when each server sees itself alone, and does not serve.
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

// checkMostAdvanced returns nil when no member has a transaction that none of the servers, which run, has. What they
// were sent and have yet to apply does not count: a server that is started again may have lost it.
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

// queryExecuted are the transactions that a member has done. One that does not run is started for a
// moment, in no group, to be asked.
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
