package ndb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/database/mysql"
	"skerry/internal/machine/host"
)

// Halt implements database.Cluster. It also ends a management node on the node; the others serve without it until
// another member is lost.
func (c *cluster) Halt(ctx context.Context, node host.Host, manner database.Manner) error {
	return c.RunHalt(ctx, node, func(ctx context.Context, s *mysql.Server) error {
		c.ReportProgress("halting %s (%s)", node.Name(), manner)
		err := c.endMember(ctx, c.memberOf(s), manner)
		if node.Name() != c.manager.Name() {
			return err
		}
		c.mu.Lock()
		d := c.management
		c.management = nil
		c.mu.Unlock()
		if d != nil {
			err = errors.Join(err, d.Kill()) // it holds nothing but what is on disk
		}
		return err
	})
}

// Revive implements database.Cluster: a data node reads its disk and copies the rest from its node group.
func (c *cluster) Revive(ctx context.Context, node host.Host) error {
	return c.RunRevive(ctx, node, func(ctx context.Context, s *mysql.Server) error {
		if s.Running() {
			return mysql.ErrRuns
		}
		c.ReportProgress("reviving %s", node.Name())
		m := c.memberOf(s)
		if err := c.revive(ctx, m); err != nil {
			// A halted member can be revived again.
			return errors.Join(err, c.endMember(context.WithoutCancel(ctx), m, database.Abrupt))
		}
		return nil
	})
}

func (c *cluster) revive(ctx context.Context, m member) error {
	c.mu.Lock()
	managed := c.management != nil
	c.mu.Unlock()
	if !managed {
		if err := c.startManager(ctx, false); err != nil {
			return err
		}
	}
	d, err := c.reviveData(ctx, m)
	if err != nil {
		return err
	}
	if err := c.reviveSQL(ctx, m); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not serving after %v", startTimeout))
	defer cancel()
	if err := c.Servers.Await(ctx, func(ctx context.Context) error { return c.checkServes(ctx, []member{m}) }); err != nil {
		return err
	}
	return c.confirmMember(m, d)
}

// confirmMember makes the end of a member's processes a failure of the cluster again.
func (c *cluster) confirmMember(m member, data *daemon.Daemon) error {
	m.MarkMember()
	if err := data.ConfirmMember(); err != nil {
		return err
	}
	if !m.Running() {
		return fmt.Errorf("the SQL node on %s has ended%s", m.Host.Name(), m.LastLines())
	}
	return nil
}

// stopGrace bounds the stop of a data node: 8 s for clients, and some global checkpoints of two seconds.
const stopGrace = time.Minute

// stopData stops a data node by command, which hands over its transactions. SIGTERM, which ends it at once, follows
// without a management node, if NDB refuses because rows would be unavailable, or if the node is in no node group: it
// has no rows then, and would wait for a handover without an answer.
func (c *cluster) stopData(ctx context.Context, m member, d *daemon.Daemon) error {
	c.mu.Lock()
	managed := c.management != nil
	c.mu.Unlock()
	if managed {
		d.MarkLeaving()
		if err := c.shutDown(ctx, m, d); err != nil {
			c.Log.Info("a data node does not stop by itself", "node", m.Host.Name(), "error", err)
		}
	}
	return d.Stop(ctx)
}

// shutDown stops a data node of a node group by command and waits for its end.
func (c *cluster) shutDown(ctx context.Context, m member, d *daemon.Daemon) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stopGrace, fmt.Errorf("not stopped after %v", stopGrace))
	defer cancel()
	peers, err := c.queryPeers(ctx)
	if err != nil || peers[m.id].group < 0 {
		return err
	}
	if _, err := c.runManager(ctx, fmt.Sprintf("%d STOP", m.id)); err != nil {
		return err
	}
	select {
	case <-d.Done():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
