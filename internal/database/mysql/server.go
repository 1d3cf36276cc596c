package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// Server is a server on a node: its files and, while it runs, its process.
//
//	<node>/<kind>/my.cnf      its configuration
//	              data/       its data directory
//	              <kind>.log
type Server struct {
	Host host.Host
	Dir  string // <node>/<kind>
	Port int    // clients'

	// db queries the server from its own node, so that queries cross no link.
	db *sql.DB

	daemon.Seat
}

// NewServer returns a server of a kind on a node. It does not run yet.
func NewServer(h host.Host, kind string, port int) (*Server, error) {
	s := &Server{Host: h, Dir: filepath.Join(h.Dir(), kind), Port: port}
	c := config(s.Addr(), User, "", "")
	c.DialFunc = host.Dialer(h, AdminTimeout)
	connector, err := driver.NewConnector(c)
	if err != nil {
		return nil, fmt.Errorf("preparing questions to the server on %s: %w", h.Name(), err)
	}
	s.db = sql.OpenDB(connector)
	s.db.SetMaxIdleConns(1)
	s.db.SetMaxOpenConns(4)
	return s, nil
}

func (s *Server) Name() string { return s.Host.Name() }

// Addr returns the client address, host:port.
func (s *Server) Addr() string { return net.JoinHostPort(s.Host.Addr(), strconv.Itoa(s.Port)) }

// Data returns the data directory.
func (s *Server) Data() string { return filepath.Join(s.Dir, "data") }

// ConfigFile returns the configuration file.
func (s *Server) ConfigFile() string { return filepath.Join(s.Dir, "my.cnf") }

// Fill replaces the data directory by a copy of a template, or an empty one if from is nil. It changes nothing if
// a process listens on one of the ports.
func (s *Server) Fill(ctx context.Context, from *Template, ports ...int) error {
	if err := daemon.PortsFree(ctx, s.Host, filepath.Base(s.Dir), append(ports, s.Port)...); err != nil {
		return err
	}
	if err := files.Empty(ctx, s.Host.Files(), s.Dir); err != nil {
		return fmt.Errorf("emptying the directory of %s: %w", s.Host.Name(), err)
	}
	if from != nil {
		return files.Copy(ctx, s.Host.Files(), s.Data(), from.Host.Files(), from.Data)
	}
	if err := s.Host.Files().MakeDir(ctx, s.Data()); err != nil {
		return fmt.Errorf("creating the directory of %s: %w", s.Host.Name(), err)
	}
	return nil
}

// Start starts and watches the process of an unprivileged user. It does not wait until the server serves.
func (s *Server) Start(ctx context.Context, set *daemon.Set, c host.Command, ports ...int) (*daemon.Daemon, error) {
	if err := GiveToServerUser(ctx, s.Host, s.Dir); err != nil {
		return nil, err
	}
	c.Dir, c.Log = s.Data(), filepath.Join(s.Dir, c.Name+".log")
	d, err := set.Start(ctx, s.Host, daemon.Spec{Command: AsServerUser(c), Ports: append(ports, s.Port), Grace: StopGrace})
	if err != nil {
		return nil, err
	}
	s.SetServer(d)
	return d, nil
}

// StartMySQL is Start for the mysqld of an installation with the server's configuration file.
func (s *Server) StartMySQL(ctx context.Context, set *daemon.Set, in database.Installation, ports ...int) (*daemon.Daemon, error) {
	return s.Start(ctx, set, host.Command{
		Name: "mysqld", Path: in.Programs["mysqld"], Env: in.Env, Args: []string{"--defaults-file=" + s.ConfigFile()},
	}, ports...)
}

// AwaitAnswer waits until the server, with process d, answers a query.
func (s *Server) AwaitAnswer(ctx context.Context, d *daemon.Daemon, timeout time.Duration) error {
	return d.Await(ctx, timeout, func(ctx context.Context) error {
		_, err := s.Query(ctx, "SELECT 1")
		return err
	})
}

// LastLines returns the last lines of the log with an introduction, for the end of an error.
func (s *Server) LastLines() string {
	if d := s.Server(); d != nil {
		return d.LastLines()
	}
	return ""
}

// MarkLeaving makes the server's end no failure of the cluster, until MarkMember.
func (s *Server) MarkLeaving() {
	if d := s.Server(); d != nil {
		d.MarkLeaving()
	}
}

// MarkMember makes the server's end a failure of the cluster.
func (s *Server) MarkMember() {
	if d := s.Server(); d != nil {
		d.MarkMember()
	}
}

// BeginLeave marks the server as halted and returns its leaving process, nil if it was halted before.
func (s *Server) BeginLeave() *daemon.Daemon {
	d := s.Server()
	if !s.MarkHalted() || d == nil {
		return nil
	}
	d.MarkLeaving()
	return d
}

// Close closes the query connections.
func (s *Server) Close() error { return s.db.Close() }

// Exec runs a statement.
func (s *Server) Exec(ctx context.Context, statement string, args ...any) error {
	if _, err := s.db.ExecContext(ctx, statement, args...); err != nil {
		return fmt.Errorf("%s: %s: %w", s.Host.Name(), statement, err)
	}
	return nil
}

// Query runs a query within AdminTimeout and returns its rows as text. NULL is "".
func (s *Server) Query(ctx context.Context, query string, args ...any) ([][]string, error) {
	return s.QueryWithin(ctx, AdminTimeout, query, args...)
}

// QueryWithin is Query with another bound.
func (s *Server) QueryWithin(ctx context.Context, bound time.Duration, query string, args ...any) ([][]string, error) {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("querying %s: %w", s.Host.Name(), err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, fmt.Errorf("querying %s: %w", s.Host.Name(), err)
	}
	var table [][]string
	for rows.Next() {
		cells, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, fmt.Errorf("querying %s: %w", s.Host.Name(), err)
		}
		row := make([]string, len(cells))
		for i, c := range cells {
			row[i] = c.String
		}
		table = append(table, row)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("querying %s: %w", s.Host.Name(), err)
	}
	return table, nil
}

// QueryPairs runs a query with two columns and returns the second by the first.
func (s *Server) QueryPairs(ctx context.Context, query string) (map[string]string, error) {
	rows, err := s.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	pairs := make(map[string]string, len(rows))
	for _, r := range rows {
		if len(r) != 2 {
			return nil, fmt.Errorf("querying %s: %d columns where 2 were expected", s.Host.Name(), len(r))
		}
		pairs[r[0]] = r[1]
	}
	return pairs, nil
}

// countTimeout bounds a count, which reads the whole table.
const countTimeout = 5 * time.Minute

// Count counts the rows of the benchmark's table, 0 without a table. Prefix begins the statement.
func (s *Server) Count(ctx context.Context, prefix string) (int64, error) {
	rows, err := s.QueryWithin(ctx, countTimeout, prefix+"SELECT COUNT(*) FROM "+quote(Schema)+"."+quote(Table))
	if isNoTable(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("counting rows: %w", err)
	}
	n, err := strconv.ParseInt(rows[0][0], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("counting rows: %w", err)
	}
	return n, nil
}

// Clear empties the benchmark's table through this server.
func (s *Server) Clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	err := s.Exec(ctx, "TRUNCATE TABLE "+quote(Schema)+"."+quote(Table))
	if isNoTable(err) {
		return nil
	}
	return err
}

func isNoTable(err error) bool {
	var e *driver.MySQLError
	return errors.As(err, &e) && e.Number == errNoTable
}
