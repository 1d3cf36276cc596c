package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"skerry/internal/database/daemon"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

const (
	// adminTimeout bounds one query to one member.
	adminTimeout = 10 * time.Second
	// startTimeout bounds a start, in which recovery after a crash reads WAL.
	startTimeout = 60 * time.Second
	// stopTimeout bounds a fast shutdown, in which a primary waits for its standbys.
	stopTimeout = 20 * time.Second
	// The user that servers run as. They refuse to run as root.
	nobody = 65534
	// errorLines is the number of lines of a tool's output in an error.
	errorLines = 5
)

type member struct {
	host host.Host
	addr string // for clients

	daemon.Seat
	// stale means that another member became primary meanwhile: the last writes may not be in the history.
	stale atomic.Bool
}

func (m *member) Name() string { return m.host.Name() }

func newMember(h host.Host, o options) *member {
	return &member{host: h, addr: net.JoinHostPort(h.Addr(), strconv.Itoa(o.port))}
}

func (m *member) dir() string    { return filepath.Join(m.host.Dir(), Name) }
func (m *member) data() string   { return filepath.Join(m.dir(), "data") }
func (m *member) config() string { return filepath.Join(m.dir(), "postgresql.conf") }
func (m *member) access() string { return filepath.Join(m.dir(), "pg_hba.conf") }
func (m *member) log() string    { return filepath.Join(m.dir(), "postgres.log") }

func (m *member) prepare(ctx context.Context) error {
	if err := files.Empty(ctx, m.host.Files(), m.dir()); err != nil {
		return fmt.Errorf("emptying the directory of postgres on %s: %w", m.host.Name(), err)
	}
	if err := m.host.Files().Own(ctx, m.dir(), nobody, nobody); err != nil {
		return fmt.Errorf("changing the owner of the directory of postgres on %s: %w", m.host.Name(), err)
	}
	return nil
}

// allowAll accepts all clients, because a lab's network is isolated.
const allowAll = "host all all all trust\nhost replication all all trust\n"

// configure writes the member's settings, as a standby if primary is not nil.
func (m *member) configure(ctx context.Context, o options, primary *member) error {
	lines := append([]string{
		"listen_addresses = '" + m.host.Addr() + "'",
		"port = " + strconv.Itoa(o.port),
		"unix_socket_directories = ''",
		"hba_file = '" + m.access() + "'",
		"wal_level = replica",
		"wal_log_hints = on", // for pg_rewind
		"max_wal_senders = " + strconv.Itoa(2*maxNodes),
		"max_replication_slots = " + strconv.Itoa(2*maxNodes),
		"wal_retrieve_retry_interval = '100ms'", // a new primary is found at once
		"jit = off",
		"timezone = 'GMT'",
		"log_timezone = 'GMT'",
		"log_line_prefix = '%m [%p] '",
	}, o.config...)
	if primary != nil {
		lines = append(lines,
			fmt.Sprintf("primary_conninfo = 'host=%s port=%d user=%s application_name=''%s'' connect_timeout=5'",
				primary.host.Addr(), o.port, user, m.host.Name()),
			"primary_slot_name = '"+slotOf(m.addr)+"'")
	}
	for path, content := range map[string]string{m.config(): strings.Join(lines, "\n") + "\n", m.access(): allowAll} {
		if err := files.WriteText(ctx, m.host.Files(), path, content); err != nil {
			return fmt.Errorf("configuring postgres on %s: %w", m.host.Name(), err)
		}
	}
	return nil
}

// becomeStandby makes the server follow a primary after its next start.
func (m *member) becomeStandby(ctx context.Context) error {
	if err := files.WriteText(ctx, m.host.Files(), filepath.Join(m.data(), "standby.signal"), ""); err != nil {
		return fmt.Errorf("making postgres on %s a standby: %w", m.host.Name(), err)
	}
	return nil
}

func (c *cluster) command(m *member, program string, args ...string) host.Command {
	return host.Command{
		Name: program, Path: c.Env.Installation.Programs[program], Args: args,
		// Messages are looked at; and no setting of the person's own may count.
		Env: append([]string{"LC_ALL=C", "HOME=" + m.dir()}, c.Env.Installation.Env...), Dir: m.dir(),
		UID: nobody, GID: nobody,
	}
}

func (c *cluster) tool(ctx context.Context, m *member, program string, args ...string) error {
	cmd := c.command(m, program, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	p, err := m.host.Start(ctx, cmd)
	if err != nil {
		return fmt.Errorf("starting %s on %s: %w", program, m.host.Name(), err)
	}
	var failed error
	select {
	case <-p.Done():
		failed = p.Err()
	case <-ctx.Done():
		failed = errors.Join(context.Cause(ctx), p.Kill())
	}
	if failed != nil {
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		return fmt.Errorf("%s on %s: %w: %s", program, m.host.Name(), failed, strings.Join(lines[max(0, len(lines)-errorLines):], "\n"))
	}
	c.Log.Debug(program, "node", m.host.Name(), "output", out.String())
	return nil
}

func (c *cluster) run(ctx context.Context, m *member, trial bool) error {
	cmd := c.command(m, "postgres", "-D", m.data(), "-c", "config_file="+m.config())
	cmd.Name, cmd.Log = Name, m.log()
	d, err := c.Servers.Start(ctx, m.host, daemon.Spec{Command: cmd, Ports: []int{c.options.port}})
	if err != nil {
		return err
	}
	if trial {
		d.MarkLeaving()
	}
	m.SetServer(d)
	return d.Await(ctx, startTimeout, func(ctx context.Context) error {
		return m.withConn(ctx, func(ctx context.Context, conn *pgconn.PgConn) error { return nil })
	})
}

func (m *member) withConn(ctx context.Context, what func(context.Context, *pgconn.PgConn) error) error {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	conn, err := connect(ctx, m.addr, settings{user: user, database: user}, host.Dialer(m.host, adminTimeout))
	if err != nil {
		return fmt.Errorf("querying postgres on %s: %w", m.host.Name(), err)
	}
	defer abandon(conn)
	if err := what(ctx, conn); err != nil {
		return fmt.Errorf("querying postgres on %s: %w", m.host.Name(), err)
	}
	return nil
}

func (m *member) query(ctx context.Context, sql string) (text [][]string, err error) {
	err = m.withConn(ctx, func(ctx context.Context, conn *pgconn.PgConn) error {
		text, err = rows(ctx, conn, sql)
		return err
	})
	return text, err
}

// stop ends a server with SIGINT, a fast shutdown: SIGTERM would wait for clients.
func (m *member) stop(ctx context.Context) error {
	return m.end(ctx, syscall.SIGINT)
}

// quitNow ends a server and all its processes at once, without a shutdown checkpoint.
func (m *member) quitNow(ctx context.Context) error {
	return m.end(ctx, syscall.SIGQUIT)
}

func (m *member) end(ctx context.Context, signal syscall.Signal) error {
	d := m.Server()
	if d == nil || !d.Running() {
		return nil
	}
	if err := d.Signal(signal); err != nil {
		return err
	}
	late := time.NewTimer(stopTimeout)
	defer late.Stop()
	select {
	case <-d.Done():
		return nil
	case <-late.C:
	case <-ctx.Done():
	}
	return m.Kill()
}

// Kill ends a server and all its processes with SIGKILL. Orphaned processes would hold the data for a while.
func (m *member) Kill() error {
	d := m.Server()
	if d == nil {
		return nil
	}
	return d.KillFamily()
}
