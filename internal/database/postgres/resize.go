package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
)

const (
	// changeTimeout bounds a change of membership, in which a clone is copied over slow links.
	changeTimeout = 10 * time.Minute
	// rejoinTimeout bounds a return; after it the member is cloned again.
	rejoinTimeout = 30 * time.Second
)

// Join implements database.Cluster:
//
//	slot            accepted: the primary keeps WAL for the new standby
//	pg_basebackup   the primary's data is copied
//	start           complete: the primary says that it streams and has replayed all that
//	                there was when it began to
func (c *cluster) Join(ctx context.Context, node host.Host) (database.Change, error) {
	var primary *member
	m := newMember(node, c.options)
	accepted := false
	return c.RunJoin(ctx, node, daemon.JoinSteps{
		Timeout: changeTimeout,
		Check: func(context.Context) error {
			if primary = c.primary.Load(); primary == nil {
				return fmt.Errorf("%w: no primary", database.ErrNotReady)
			}
			return nil
		},
		Join: func(ctx context.Context, timer *daemon.ChangeTimer) error {
			if err := c.createSlot(ctx, primary, m); err != nil {
				return err
			}
			timer.Accept()
			accepted = true
			if err := c.admitClone(ctx, m, primary); err != nil {
				return err
			}
			c.Add(m)
			return nil
		},
		Undo: func(ctx context.Context) error {
			if !accepted {
				return nil
			}
			ctx, cancel := context.WithTimeout(ctx, adminTimeout)
			defer cancel()
			return errors.Join(m.Kill(), c.dropSlot(ctx, primary, m), m.discard(ctx))
		},
	})
}

func (c *cluster) admitClone(ctx context.Context, m, primary *member) error {
	if err := c.clone(ctx, m, primary); err != nil {
		return err
	}
	return c.admit(ctx, m, primary, changeTimeout)
}

func (c *cluster) admit(ctx context.Context, m, primary *member, timeout time.Duration) error {
	if err := c.run(ctx, m, true); err != nil {
		return err
	}
	if err := c.awaitStreaming(ctx, m, primary, timeout); err != nil {
		return err
	}
	// Slots from its own time as primary would keep WAL that no standby needs.
	if _, err := m.query(ctx, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active"); err != nil {
		return err
	}
	m.Server().MarkMember()
	return nil
}

// Leave implements database.Cluster. A standby:
//
//	stop            fast shutdown, or SIGKILL
//	slot dropped    accepted and complete: the primary keeps nothing for it any more
//
// The primary:
//
//	stop            fast shutdown, after the standbys have everything; or SIGKILL
//	pg_promote      accepted: the most advanced standby takes writes
//	  wait          complete: the other standbys stream from it
func (c *cluster) Leave(ctx context.Context, node host.Host, manner database.Manner) (database.Change, error) {
	return c.RunLeave(ctx, node, daemon.LeaveSteps[*member]{
		Timeout: changeTimeout,
		Check:   func(_ context.Context, m *member) error { return c.checkLeave(m) },
		Leave: func(ctx context.Context, m *member, timer *daemon.ChangeTimer) error {
			if err := c.halt(ctx, m, manner); err != nil {
				return err
			}
			c.Drop(m)
			if primary := c.primary.Load(); primary != nil {
				if err := c.dropSlot(ctx, primary, m); err != nil {
					return err
				}
			}
			timer.Accept()
			if err := c.Servers.Await(ctx, c.checkSettled); err != nil {
				return err
			}
			timer.Complete()
			return m.discard(ctx)
		},
	})
}

// checkLeave refuses the leave of the last member that could be primary.
func (c *cluster) checkLeave(m *member) error {
	members, primary := c.current()
	for _, o := range members {
		if o != m && !o.Halted() && (primary != nil || m.Halted()) {
			return nil
		}
	}
	return fmt.Errorf("%w: no other member runs that could be primary", database.ErrFixed)
}

func (c *cluster) checkSettled(ctx context.Context) error {
	members, primary := c.current()
	if primary == nil {
		return fmt.Errorf("%w: no primary", database.ErrNotReady)
	}
	states, err := standbys(ctx, primary)
	if err != nil {
		return err
	}
	for _, m := range members {
		if s := states[m.host.Name()]; m != primary && !m.Halted() && s != streaming {
			return fmt.Errorf("%w: the standby on %s is not streaming (%q)", database.ErrNotReady, m.host.Name(), s)
		}
	}
	return nil
}

// createSlot creates a standby's slot on a primary, which from then on keeps the WAL that the standby lacks.
func (c *cluster) createSlot(ctx context.Context, primary, m *member) error {
	_, err := primary.query(ctx, fmt.Sprintf("SELECT pg_create_physical_replication_slot(%[1]s, true) "+
		"WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = %[1]s)", literal(slotOf(m.addr))))
	return err
}

// dropSlot drops a standby's slot, which is in use until the standby's connection has ended.
func (c *cluster) dropSlot(ctx context.Context, primary, m *member) error {
	return c.Servers.Await(ctx, func(ctx context.Context) error {
		_, err := primary.query(ctx, fmt.Sprintf("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = %[1]s AND active; "+
			"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %[1]s", literal(slotOf(m.addr))))
		return err
	})
}

func (c *cluster) clone(ctx context.Context, m, primary *member) error {
	if err := m.prepare(ctx); err != nil {
		return err
	}
	if err := c.tool(ctx, m, "pg_basebackup", "-h", primary.host.Addr(), "-p", strconv.Itoa(c.options.port), "-U", user, "-w",
		"-D", m.data(), "-X", "stream", "-S", slotOf(m.addr), "-c", "fast", "--no-sync"); err != nil {
		return err
	}
	if err := m.configure(ctx, c.options, primary); err != nil {
		return err
	}
	m.stale.Store(false)
	return m.becomeStandby(ctx)
}

func (c *cluster) followPrimary(ctx context.Context, m, primary *member) error {
	if err := m.configure(ctx, c.options, primary); err != nil {
		return err
	}
	_, err := m.query(ctx, "SELECT pg_reload_conf()")
	return err
}

// rewind fetches the blocks that differ between a returning member and the new primary (pg_rewind).
func (c *cluster) rewind(ctx context.Context, m, primary *member) error {
	if err := m.configure(ctx, c.options, nil); err != nil { // it may have to recover first
		return err
	}
	source := fmt.Sprintf("host=%s port=%d user=%s dbname=%s", primary.host.Addr(), c.options.port, user, user)
	if err := c.tool(ctx, m, "pg_rewind", "-D", m.data(), "--config-file="+m.config(), "--source-server="+source, "--no-sync"); err != nil {
		return err
	}
	if err := m.configure(ctx, c.options, primary); err != nil {
		return err
	}
	m.stale.Store(false)
	return m.becomeStandby(ctx)
}

// rejoin makes a returning member a standby: unchanged, rewound, or cloned again.
func (c *cluster) rejoin(ctx context.Context, m, primary *member) error {
	if err := c.createSlot(ctx, primary, m); err != nil {
		return err
	}
	var err error
	if m.stale.Load() {
		err = c.rewind(ctx, m, primary)
	} else {
		err = errors.Join(m.configure(ctx, c.options, primary), m.becomeStandby(ctx))
	}
	if err == nil {
		err = c.admit(ctx, m, primary, rejoinTimeout)
	}
	if err == nil || ctx.Err() != nil || c.Err() != nil {
		return err
	}
	c.ReportProgress("cloning %s again: %v", m.host.Name(), err)
	if err := m.Kill(); err != nil {
		return err
	}
	return c.admitClone(ctx, m, primary)
}

func (m *member) discard(ctx context.Context) error {
	if err := m.host.Files().Remove(ctx, m.data()); err != nil {
		return fmt.Errorf("removing the data of postgres on %s: %w", m.host.Name(), err)
	}
	return nil
}
