package chaos

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	_ "modernc.org/sqlite" // driver sqlite

	"skerry/internal/base/linger"
	"skerry/systems/hydra/deploy"
)

// operator changes a cloud's database with SQL while members run, like its owner could.
type operator struct {
	url  string
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// file is held while SQLite's file is used or removed: closing a removed file would delete the write-ahead log of
	// its successor.
	file sync.Mutex
}

func newOperator(c deploy.CloudNodes, url string) *operator {
	if url == "" {
		url = "sqlite:" + sqliteFile(c)
	}
	return &operator{url: url, dial: c.Edge.Dial}
}

// kept is the prefix of copies, which are stored in the same database.
const kept = "earlier_"

func (o *operator) kind() string { kind, _, _ := strings.Cut(o.url, ":"); return kind }

func (o *operator) open() (*sql.DB, error) {
	switch o.kind() {
	case "sqlite": // never creates a file
		return sql.Open("sqlite", "file:"+strings.TrimPrefix(o.url, "sqlite:")+"?mode=rw&_pragma=busy_timeout(10000)&_txlock=immediate")
	case "postgres":
		cfg, err := pgx.ParseConfig(o.url)
		if err != nil {
			return nil, err
		}
		cfg.DialFunc = o.dial
		return stdlib.OpenDB(*cfg), nil
	}
	u, err := url.Parse(o.url)
	if err != nil {
		return nil, err
	}
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.DBName = u.User.Username(), "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	cfg.DialFunc, cfg.Logger = o.dial, &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// try calls f with the database once.
func (o *operator) try(f func(*sql.DB) error) (err error) {
	o.file.Lock()
	defer o.file.Unlock()
	db, err := o.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return f(db)
}

// insist calls f with the database until it succeeds: a server may be starting, or a paused member may hold a lock.
func (o *operator) insist(ctx context.Context, f func(*sql.DB) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := o.try(f)
		if err == nil || linger.For(ctx, 100*time.Millisecond) != nil {
			return err
		}
	}
}

// alone calls f in a transaction that excludes applying members.
func alone(ctx context.Context, db *sql.DB, f func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := all(ctx, tx, "UPDATE hydra_meta SET format = format WHERE id = 1"); err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// all executes statements in order.
func all(ctx context.Context, on interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}, statements ...string) error {
	for _, q := range statements {
		if _, err := on.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("%s: %w", q, err)
		}
	}
	return nil
}

// asker is a database or a transaction.
type asker interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// texts returns the rows of a query for texts.
func texts(ctx context.Context, on asker, query string) (list []string, err error) {
	rows, err := on.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return list, rows.Err()
}

// tables returns the tables of the database, and those with copies.
func (o *operator) tables(ctx context.Context, on asker) (have, copies []string, err error) {
	query := "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()"
	switch o.kind() {
	case "sqlite":
		query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
	case "postgres":
		query = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
	}
	names, err := texts(ctx, on, query)
	for _, name := range names {
		if of, ok := strings.CutPrefix(name, kept); ok {
			copies = append(copies, of)
		} else {
			have = append(have, name)
		}
	}
	return have, copies, err
}

var errTables = errors.New("a table was created meanwhile")

// backUp copies the database in one transaction.
func (o *operator) backUp(ctx context.Context, db *sql.DB) error {
	have, copies, err := o.tables(ctx, db)
	if err != nil {
		return err
	}
	for _, name := range copies {
		if err := all(ctx, db, "DROP TABLE "+kept+name); err != nil {
			return err
		}
	}
	for _, name := range have { // MySQL commits CREATE TABLE immediately
		if err := all(ctx, db, "CREATE TABLE "+kept+name+" AS SELECT * FROM "+name+" WHERE 1 = 0"); err != nil {
			return err
		}
	}
	return alone(ctx, db, func(tx *sql.Tx) error {
		now, _, err := o.tables(ctx, tx)
		if slices.Sort(have); err != nil || !slices.Equal(have, slices.Sorted(slices.Values(now))) {
			return errors.Join(errTables, err)
		}
		for _, name := range have {
			if err := all(ctx, tx, "INSERT INTO "+kept+name+" SELECT * FROM "+name); err != nil {
				return err
			}
		}
		return nil
	})
}

// putBack restores the copy of the database.
func (o *operator) putBack(ctx context.Context, db *sql.DB) error {
	return alone(ctx, db, func(tx *sql.Tx) error {
		have, copies, err := o.tables(ctx, tx)
		if err != nil {
			return err
		}
		for _, name := range have {
			do := []string{"DELETE FROM " + name, "INSERT INTO " + name + " SELECT * FROM " + kept + name}
			switch {
			case slices.Contains(copies, name):
			case o.kind() == "mysql": // cannot drop a table in a transaction
				do = do[:1]
			default:
				do = []string{"DROP TABLE " + name}
			}
			if err := all(ctx, tx, do...); err != nil {
				return err
			}
		}
		return nil
	})
}

// replace turns the database into one of another log, with other rows.
func (o *operator) replace(ctx context.Context, db *sql.DB) error {
	if err := o.backUp(ctx, db); err != nil {
		return err
	}
	return alone(ctx, db, func(tx *sql.Tx) error {
		return all(ctx, tx, `UPDATE t SET value = '{"v":-7}'`, "UPDATE hydra_meta SET log_id = '00000000000000000000000000000000', applied = applied + 3")
	})
}

// empty drops all tables.
func (o *operator) empty(ctx context.Context, db *sql.DB) error {
	have, _, err := o.tables(ctx, db)
	if err != nil {
		return err
	}
	for _, name := range have {
		if err := all(ctx, db, "DROP TABLE "+name); err != nil {
			return err
		}
	}
	return nil
}
