package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// createSlot makes a standby's slot on a primary, which from then on keeps what the standby
// has not got yet.
func (c *cluster) createSlot(ctx context.Context, primary, m *member) error {
	_, err := primary.query(ctx, fmt.Sprintf("SELECT pg_create_physical_replication_slot(%[1]s, true) "+
		"WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = %[1]s)", literal(slotOf(m.addr))))
	return err
}

// dropSlot drops a standby's slot. While the standby's connection still ends the slot is
// in use.
func (c *cluster) dropSlot(ctx context.Context, primary, m *member) error {
	return c.Servers.Await(ctx, func(ctx context.Context) error {
		_, err := primary.query(ctx, fmt.Sprintf("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = %[1]s AND active; "+
			"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %[1]s", literal(slotOf(m.addr))))
		return err
	})
}

// clone makes a standby's data a copy of the primary's, over the lab's links.
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

// followPrimary has a standby that runs take its WAL from another primary.
func (c *cluster) followPrimary(ctx context.Context, m, primary *member) error {
	if err := m.configure(ctx, c.options, primary); err != nil {
		return err
	}
	_, err := m.query(ctx, "SELECT pg_reload_conf()")
	return err
}

// rewind makes the data of a member that was down while another became primary a part of
// that one's history again: pg_rewind fetches the blocks that differ.
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

// rejoin brings a member that was down back as a standby of the primary: as it is, rewound,
// or, where that cannot be done, cloned anew.
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
	c.ReportProgress("cloning %s anew: %v", m.host.Name(), err)
	if err := m.Kill(); err != nil {
		return err
	}
	return c.admitClone(ctx, m, primary)
}

// discard removes a member's data.
func (m *member) discard(ctx context.Context) error {
	if err := m.host.Files().Remove(ctx, m.data()); err != nil {
		return fmt.Errorf("removing the data of postgres on %s: %w", m.host.Name(), err)
	}
	return nil
}
