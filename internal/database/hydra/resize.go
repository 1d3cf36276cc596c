package hydra

import (
	"context"
	"errors"
	"fmt"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/hydraclient"
)

// isFinal reports whether repeating a change cannot help.
func isFinal(err error) bool { return errors.Is(err, hydraclient.ErrBadRequest) }

// Join implements database.Cluster:
//
//	add      accepted: the cluster has agreed on the member
//	start    the learner fetches the log, or a snapshot, without a vote
//	promote  the leader's own doing, once it has caught up
//	read     complete: one that has to be agreed on succeeds there
func (c *cluster) Join(ctx context.Context, node host.Host) (database.Change, error) {
	var m *member
	return c.RunJoin(ctx, node, daemon.JoinSteps{
		Timeout: daemon.ChangeTimeout,
		Check: func(context.Context) error {
			if c.options.direct {
				return fmt.Errorf("%w: it is one SQL database", database.ErrUnsupported)
			}
			return nil
		},
		Join: func(ctx context.Context, timer *daemon.ChangeTimer) (err error) {
			if m, err = c.addMember(node); err != nil {
				return err
			}
			if err := c.registerMember(ctx, m); err != nil {
				return err
			}
			timer.Accept()
			return c.startJoined(ctx, m)
		},
		Undo: func(ctx context.Context) error { return c.undoJoin(ctx, m) },
	})
}

func (c *cluster) registerMember(ctx context.Context, m *member) error {
	return daemon.RetryChange(ctx, c.Servers.Await, isFinal, func(ctx context.Context) error {
		entry, err := c.findServing(ctx, m)
		if err != nil {
			return err
		}
		_, err = entry.admin.AddMember(ctx, api.Member{ID: m.id, Name: m.host.Name(), Cloud: m.cloud, Peer: m.peer, API: m.addr, Witness: m.witness})
		return err
	})
}

func (c *cluster) startJoined(ctx context.Context, m *member) error {
	if err := c.startNew(ctx, m, c.All(), true); err != nil {
		return err
	}
	d := m.Server()
	err := d.Await(ctx, daemon.ChangeTimeout, func(ctx context.Context) error {
		there, err := c.findListed(ctx, m)
		switch {
		case err != nil:
			return err
		case there == nil || there.Learner:
			return fmt.Errorf("%w: %s has no vote yet", database.ErrNotReady, m.host.Name())
		}
		return m.checkServing(ctx)
	})
	if err != nil {
		return err
	}
	return d.ConfirmMember()
}

// findListed returns the entry of a member in another member's list, nil if it is not listed.
func (c *cluster) findListed(ctx context.Context, m *member) (*api.Member, error) {
	entry, err := c.findServing(ctx, m)
	if err != nil {
		return nil, err
	}
	list, err := entry.admin.Members(ctx)
	if err != nil {
		return nil, fmt.Errorf("querying hydra on %s for the members: %w", entry.host.Name(), err)
	}
	for _, o := range list {
		if o.ID == m.id {
			return &o, nil
		}
	}
	return nil, nil
}

func (c *cluster) undoJoin(ctx context.Context, m *member) error {
	if m == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 6*adminTimeout)
	defer cancel()
	halted := m.Halt(ctx, database.Abrupt)
	return errors.Join(halted, c.removeMember(ctx, m), c.dropMember(m))
}

// Leave implements database.Cluster:
//
//	transfer   where it leads, so that no election is needed
//	remove     accepted: the cluster has agreed on it
//	wait       complete: no member lists it, its process has ended by itself
//
// Abrupt, its process is killed first.
func (c *cluster) Leave(ctx context.Context, node host.Host, manner database.Manner) (database.Change, error) {
	return daemon.LeaveQuorum(ctx, c.Cluster, node, manner, daemon.QuorumSteps[*member]{
		Check: c.checkLeave, Yield: c.yieldLeadership, Remove: c.removeMember, Forgotten: c.checkForgotten, Drop: c.dropMember,
	})
}

// checkLeave refuses a leave that would cost the majority or the last database.
func (c *cluster) checkLeave(ctx context.Context, m *member, manner database.Manner) error {
	members := c.All()
	others, databases := 0, 0
	for _, o := range daemon.RunningExcept(members, m) {
		if s, err := o.queryStatus(ctx); err == nil && s.Role != "learner" && s.Leader != "" {
			others++
			if !o.witness {
				databases++
			}
		}
	}
	if databases == 0 {
		return fmt.Errorf("%w: no other member with a database would serve", database.ErrFixed)
	}
	return daemon.CheckLeave(members, m, manner, others)
}

// yieldLeadership makes a leader hand over. If that fails, an election decides.
func (c *cluster) yieldLeadership(ctx context.Context, m *member) error {
	s, err := m.queryStatus(ctx)
	if err != nil || s.Leader != m.host.Name() {
		return nil
	}
	if other, err := c.findServing(ctx, m); err == nil {
		ctx, cancel := context.WithTimeout(ctx, adminTimeout)
		defer cancel()
		if err := m.admin.TransferLeader(ctx, other.host.Name()); err != nil {
			c.Log.Warn("the leader did not hand over", "node", m.host.Name(), "error", err)
		}
	}
	return nil
}

func (c *cluster) removeMember(ctx context.Context, m *member) error {
	return daemon.RetryChange(ctx, c.Servers.Await, isFinal, func(ctx context.Context) error {
		entry, err := c.findServing(ctx, m)
		if err != nil {
			return err
		}
		return entry.admin.RemoveMember(ctx, m.id)
	})
}

// checkForgotten returns nil when no running member lists m, and all of them serve.
func (c *cluster) checkForgotten(ctx context.Context, m *member) error {
	for _, o := range daemon.RunningExcept(c.All(), m) {
		list, err := o.admin.Members(ctx)
		if err != nil {
			return err
		}
		for _, l := range list {
			if l.ID == m.id {
				return fmt.Errorf("%s still lists %s", o.host.Name(), m.host.Name())
			}
		}
		if err := o.checkServing(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) Halt(ctx context.Context, node host.Host, manner database.Manner) error {
	return daemon.HaltMember(ctx, &c.MemberList, node.Name(), manner)
}

func (c *cluster) Revive(ctx context.Context, node host.Host) error {
	run := func(ctx context.Context, m *member) error { return c.startProcess(ctx, m, false) }
	serves := func(ctx context.Context, m *member) error { return m.checkServing(ctx) }
	return daemon.ReviveMember(ctx, &c.MemberList, node.Name(), run, serves)
}
