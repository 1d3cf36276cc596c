package groupreplication

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/database/mysql"
	"skerry/internal/machine/host"
)

// ErrBehind says that a group is not to be begun from a member: another one has more.
var ErrBehind = errors.New("another member has transactions that it lacks")

// errRuns says that a member was not halted.
var errRuns = errors.New("it runs")

// Revive implements database.Cluster. A member that comes back is a new one to the group:
// the others must have given up the old one first. When no member runs, the group begins
// anew from this one, which is refused if another has more.
func (c *cluster) Revive(ctx context.Context, node host.Host) error {
	s, err := c.Member("reviving", node)
	if err != nil {
		return err
	}
	if s.Running() {
		return fmt.Errorf("reviving %s: %w", node.Name(), errRuns)
	}
	c.Say("reviving %s", node.Name())
	if err := c.revive(ctx, s); err != nil {
		return errors.Join(fmt.Errorf("reviving %s: %w", node.Name(), err), s.Halt(context.WithoutCancel(ctx), true))
	}
	return nil
}

func (c *cluster) revive(ctx context.Context, s *mysql.Server) error {
	others := c.Running()
	if len(others) == 0 {
		if err := c.launchOnTrial(ctx, s); err != nil {
			return err
		}
		if err := c.ahead(ctx, s); err != nil {
			return err
		}
	} else if err := c.without(ctx, others); err != nil {
		return err
	}
	return c.admit(ctx, s, append(others, s), len(others) == 0, func() {})
}

// without waits until members that run have given up those that do not. Members that are
// no majority cannot do so: they are told to go on alone, as an operator would tell them.
func (c *cluster) without(ctx context.Context, running []*mysql.Server) error {
	ctx, cancel := context.WithTimeoutCause(ctx, expelTimeout, fmt.Errorf("the others still count it after %v", expelTimeout))
	defer cancel()
	return c.Set.Await(ctx, func(ctx context.Context) error {
		v, err := view(ctx, running[0])
		if err != nil {
			return err
		}
		if !stuck(v) {
			return agree(ctx, running)
		}
		var members []string
		for _, s := range running {
			members = append(members, local(s))
		}
		c.Say("the members that run are no majority: making them the group (group_replication_force_members)")
		for _, list := range []string{strings.Join(members, ","), ""} {
			if err := running[0].Exec(ctx, "SET GLOBAL group_replication_force_members = '"+list+"'"); err != nil {
				return err
			}
		}
		return agree(ctx, running)
	})
}

// stuck tells whether half of a view's members or more cannot be reached.
func stuck(view []member) bool {
	lost := 0
	for _, m := range view {
		if m.state == "UNREACHABLE" {
			lost++
		}
	}
	return lost > 0 && 2*lost >= len(view)
}

// ahead returns nil when no other member, none of which runs, has transactions that this
// one lacks. Each is started for a moment, in no group, to be asked.
func (c *cluster) ahead(ctx context.Context, s *mysql.Server) error {
	for _, o := range c.All() {
		if o == s {
			continue
		}
		if err := c.launchOnTrial(ctx, o); err != nil {
			return err
		}
		rows, err := o.Ask(ctx, "SELECT @@GLOBAL.gtid_executed")
		if err := errors.Join(err, o.Halt(ctx, false)); err != nil {
			return err
		}
		has, err := s.Ask(ctx, "SELECT GTID_SUBSET(?, @@GLOBAL.gtid_executed)", rows[0][0])
		if err != nil {
			return err
		}
		if has[0][0] != "1" {
			return advice.With(fmt.Errorf("%w: %s has %s", ErrBehind, o.Host.Name(), rows[0][0]), "revive %s first", o.Host.Name())
		}
	}
	return nil
}
