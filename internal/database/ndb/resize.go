package ndb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/database/mysql"
	"skerry/internal/machine/host"
)

// Join implements database.Cluster, by the manual's steps for adding data nodes online:
//
//	config.ini names the node; management, data and SQL nodes restart
//	the new data node starts       accepted: it is connected, in no node group
//	CREATE NODEGROUP               once there are no_of_replicas of them
//	REORGANIZE PARTITION, OPTIMIZE TABLE
//	                               complete: the rows are spread over all groups
//
// A node that is not enough for a node group is complete when it has started. It holds no rows until others join.
func (c *cluster) Join(ctx context.Context, node host.Host) (database.Change, error) {
	return c.RunJoin(ctx, node, daemon.JoinSteps{
		Check: func(ctx context.Context) error {
			if c.options.replicas == 1 {
				return fmt.Errorf("%w: without replicas no data node can restart while the others serve", database.ErrUnsupported)
			}
			c.mu.Lock()
			last := c.last
			c.mu.Unlock()
			if last >= maxNodes {
				return fmt.Errorf("%w: %d data nodes at most", database.ErrUnsupported, maxNodes)
			}
			return c.Ready(ctx)
		},
		Join: func(ctx context.Context, timer *daemon.ChangeTimer) error {
			before := c.members()
			m, err := c.addMember(ctx, node)
			if err == nil {
				err = c.restartAll(ctx, before)
			}
			if err == nil {
				err = c.admit(ctx, m, timer.Accept)
			}
			if err != nil && m.Server != nil {
				ctx := context.WithoutCancel(ctx)
				return errors.Join(err, c.endMember(ctx, m, database.Abrupt), c.Remove(ctx, m.Server))
			}
			if err != nil {
				return err
			}
			if err := c.createNodeGroups(ctx); err != nil {
				// It stays a member, because it may be in a node group now.
				return fmt.Errorf("spreading rows over it: %w", err)
			}
			return nil
		},
	})
}

func (c *cluster) admit(ctx context.Context, m member, accepted func()) error {
	d, err := c.reviveData(ctx, m, "--initial")
	if err != nil {
		return err
	}
	accepted()
	if err := c.reviveSQL(ctx, m); err != nil {
		return err
	}
	if err := d.Await(ctx, startTimeout, func(ctx context.Context) error { return c.checkServes(ctx, []member{m}) }); err != nil {
		return err
	}
	return c.confirmMember(m, d)
}

// restartAll restarts the management node with a new configuration, and then all other nodes. Data nodes restart one
// by one: a whole node group does not ask the arbitrator, which a restarted management node becomes only after a
// while, and two missing nodes would end the cluster. Half of the SQL nodes restart while the others serve.
func (c *cluster) restartAll(ctx context.Context, members []member) error {
	c.mu.Lock()
	management := c.management
	c.mu.Unlock()
	if err := management.Stop(ctx); err != nil {
		return err
	}
	if err := c.startManager(ctx, true); err != nil {
		return err
	}
	whole := context.WithoutCancel(ctx)
	restart := func(round []member, do func(context.Context, member) error) error {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("restarting the members: %w", context.Cause(ctx))
		}
		// A stopped member is started again even if the join or others failed.
		return daemon.ForEach(ctx, round, func(_ context.Context, _ int, m member) error { return do(whole, m) })
	}
	for _, m := range members {
		if err := restart([]member{m}, c.restartData); err != nil {
			return err
		}
	}
	for round := range slices.Chunk(members, (len(members)+1)/2) {
		if err := restart(round, c.restartSQL); err != nil {
			return err
		}
	}
	return nil
}

// restartData restarts a data node, which copies what it missed from its node group.
func (c *cluster) restartData(ctx context.Context, m member) error {
	d := c.dataOf(m)
	if d == nil {
		return fmt.Errorf("the data node on %s was halted", m.Host.Name())
	}
	if err := c.stopData(ctx, m, d); err != nil {
		return err
	}
	d, err := c.reviveData(ctx, m)
	if err != nil {
		return err
	}
	return d.ConfirmMember()
}

func (c *cluster) restartSQL(ctx context.Context, m member) error {
	if err := m.Halt(ctx, database.Graceful); err != nil {
		return err
	}
	return c.launchSQL(ctx, m)
}

func (c *cluster) dataOf(m member) *daemon.Daemon {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.data[m.Server]
}

// createNodeGroups groups data nodes that are in none, once there are enough, and spreads the table over them.
func (c *cluster) createNodeGroups(ctx context.Context) error {
	peers, err := c.queryPeers(ctx)
	if err != nil {
		return err
	}
	var ids []string
	for _, m := range c.members() {
		if p := peers[m.id]; p.started() && p.group < 0 {
			ids = append(ids, fmt.Sprint(m.id))
		}
	}
	if len(ids) < c.options.replicas {
		return nil
	}
	out, err := c.runManager(ctx, "CREATE NODEGROUP "+strings.Join(ids[:c.options.replicas], ","))
	if err != nil {
		return err
	}
	if !created.MatchString(out) {
		return fmt.Errorf("creating a node group of %s: ndb_mgm says %q", strings.Join(ids, ", "), strings.TrimSpace(out))
	}
	s, err := c.findSQL(ctx)
	if err != nil {
		return err
	}
	c.ReportProgress("spreading rows over the new node group")
	table := mysql.Schema + "." + mysql.Table
	rows, err := s.Query(ctx, "SELECT 1 FROM information_schema.tables WHERE table_schema = ? AND table_name = ?",
		mysql.Schema, mysql.Table)
	if err != nil || len(rows) == 0 {
		return err // a table that is made later is spread from the start
	}
	if err := s.Exec(ctx, "ALTER TABLE "+table+" ALGORITHM = INPLACE, REORGANIZE PARTITION"); err != nil {
		return err
	}
	_, err = s.QueryWithin(ctx, startTimeout, "OPTIMIZE TABLE "+table)
	return err
}

// Leave implements database.Cluster: only a node in no node group may.
func (c *cluster) Leave(ctx context.Context, node host.Host, manner database.Manner) (database.Change, error) {
	return c.RunLeave(ctx, node, daemon.LeaveSteps[*mysql.Server]{
		Check: func(ctx context.Context, s *mysql.Server) error {
			peers, err := c.queryPeers(ctx)
			if err != nil {
				return err
			}
			if p := peers[c.memberOf(s).id]; p.group >= 0 || !p.connected {
				return fmt.Errorf("%w: %s", database.ErrFixed, inGroup)
			}
			return nil
		},
		Leave: func(ctx context.Context, s *mysql.Server, timer *daemon.ChangeTimer) error {
			m := c.memberOf(s)
			if err := c.endMember(ctx, m, manner); err != nil {
				return err
			}
			timer.Accept()
			if err := c.Remove(ctx, s); err != nil {
				return err
			}
			return c.Servers.Await(ctx, func(ctx context.Context) error {
				peers, err := c.queryPeers(ctx)
				if err == nil && peers[m.id].connected {
					err = fmt.Errorf("the data node on %s is still connected", node.Name())
				}
				return err
			})
		},
	})
}

func (c *cluster) memberOf(s *mysql.Server) member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return member{s, c.ids[s]}
}

func (c *cluster) endMember(ctx context.Context, m member, manner database.Manner) error {
	err := m.Halt(ctx, manner)
	c.mu.Lock()
	d := c.data[m.Server]
	delete(c.data, m.Server)
	c.mu.Unlock()
	switch {
	case d == nil:
	case manner == database.Abrupt:
		err = errors.Join(err, d.Kill())
	default:
		err = errors.Join(err, c.stopData(ctx, m, d))
	}
	return err
}

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
