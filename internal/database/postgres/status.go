package postgres

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/load"
	"skerry/internal/machine/host"
)

// streaming is the state of a standby that has caught up.
const streaming = "streaming"

// standbys returns the states of the standbys connected to the primary, by node.
func standbys(ctx context.Context, primary *member) (map[string]string, error) {
	text, err := primary.query(ctx, "SELECT application_name, state FROM pg_stat_replication")
	if err != nil {
		return nil, err
	}
	states := make(map[string]string, len(text))
	for _, row := range text {
		states[row[0]] = row[1]
	}
	return states, nil
}

// Ready implements database.Cluster: the primary accepts writes, every standby streams and answers.
func (c *cluster) Ready(ctx context.Context) error {
	members, primary := c.current()
	if primary == nil {
		return fmt.Errorf("%w: no primary", database.ErrNotReady)
	}
	recovering, err := primary.query(ctx, inRecovery)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", database.ErrNotReady, err)
	case recovering[0][0] == isTrue:
		return fmt.Errorf("%w: %s is not primary yet", database.ErrNotReady, primary.host.Name())
	}
	states, err := standbys(ctx, primary)
	if err != nil {
		return fmt.Errorf("%w: %w", database.ErrNotReady, err)
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, m := range members {
		if m == primary {
			continue
		}
		if s := states[m.host.Name()]; s != streaming {
			return fmt.Errorf("%w: the standby on %s is not streaming (%q)", database.ErrNotReady, m.host.Name(), s)
		}
		g.Go(func() error {
			if _, err := m.query(gctx, inRecovery); err != nil {
				return fmt.Errorf("%w: %w", database.ErrNotReady, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// awaitStreaming waits until a standby streams and has everything that the primary had written at the call.
func (c *cluster) awaitStreaming(ctx context.Context, m, primary *member, timeout time.Duration) error {
	var target string
	return m.Server().Await(ctx, timeout, func(ctx context.Context) error {
		if target == "" {
			text, err := primary.query(ctx, "SELECT pg_current_wal_flush_lsn()")
			if err != nil {
				return err
			}
			target = text[0][0]
		}
		text, err := primary.query(ctx, fmt.Sprintf("SELECT state, replay_lsn >= %s FROM pg_stat_replication WHERE application_name = %s",
			literal(target), literal(m.host.Name())))
		switch {
		case err != nil:
			return err
		case len(text) == 0:
			return fmt.Errorf("%w: the primary knows of no standby on %s", database.ErrNotReady, m.host.Name())
		case text[0][0] != streaming || text[0][1] != isTrue:
			return fmt.Errorf("%w: the standby on %s has not caught up (%s)", database.ErrNotReady, m.host.Name(), text[0][0])
		}
		return nil
	})
}

// Members implements database.Cluster: a state is primary, the primary's state of a standby (streaming, catchup,
// ...), standby, or unreachable.
func (c *cluster) Members(ctx context.Context) ([]database.Member, error) {
	members, primary := c.current()
	states := map[string]string{}
	if primary != nil {
		if known, err := standbys(ctx, primary); err == nil {
			maps.Copy(states, known)
			states[primary.host.Name()] = "primary"
		}
	}
	return daemon.ReportMembers(ctx, members, func(ctx context.Context, m *member, into *database.Member) error {
		var n int64
		if err := m.withConn(ctx, func(ctx context.Context, conn *pgconn.PgConn) (err error) {
			n, err = count(ctx, conn, defaultTable)
			return err
		}); err != nil {
			return ctx.Err() // its state is unreachable
		}
		into.State, into.Share, into.Rows = "standby", 1, n
		if s := states[m.Name()]; s != "" {
			into.State = s
		}
		return nil
	})
}

func (c *cluster) Count(ctx context.Context) (n int64, err error) {
	primary := c.primary.Load()
	if primary == nil {
		return 0, fmt.Errorf("counting rows: %w: no primary", database.ErrNotReady)
	}
	if err := primary.withConn(ctx, func(ctx context.Context, conn *pgconn.PgConn) (err error) {
		n, err = count(ctx, conn, defaultTable)
		return err
	}); err != nil {
		return 0, fmt.Errorf("counting rows: %w", err)
	}
	return n, nil
}

func (c *cluster) Clear(ctx context.Context) error {
	primary := c.primary.Load()
	if primary == nil {
		return fmt.Errorf("clearing the table: %w: no primary", database.ErrNotReady)
	}
	if _, err := primary.query(ctx, "TRUNCATE "+defaultTable); err != nil {
		return fmt.Errorf("clearing the table: %w", err)
	}
	return nil
}

// OpenMember implements database.Replicated: a connection to the member from its own node.
func (c *cluster) OpenMember(ctx context.Context, node string) (load.Client, error) {
	m := c.On(node)
	if m == nil {
		return nil, fmt.Errorf("reading the copy of %s: %w", node, database.ErrNotMember)
	}
	s := settings{user: user, database: user, timeout: defaultTimeout, table: defaultTable}
	conn, err := connect(ctx, m.addr, s, host.Dialer(m.host, adminTimeout))
	if err != nil {
		return nil, fmt.Errorf("reading the copy of %s: %w", node, dialError(m.addr, err))
	}
	return &client{settings: s, members: func() []string { return []string{m.addr} }, alone: true,
		read: &lane{conn: conn, addr: m.addr, statements: make(map[string]*statement)}}, nil
}
