package cloudsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sync"
)

// rowReaders are connections to SQLite that read single rows, below package database/sql:
// it takes a third of the time that such a read needs.
type rowReaders struct {
	open func() (driver.Conn, error)
	most chan struct{} // holds as many as may read at a time

	mu   sync.Mutex
	idle []*rowReader
}

// rowReader is one of them, used by one goroutine at a time.
type rowReader struct {
	conn driver.Conn
	gets map[string]driver.StmtQueryContext // by table
	args []driver.NamedValue
	dest []driver.Value
}

func newRowReaders(d driver.Driver, dsn string, most int) *rowReaders {
	return &rowReaders{open: func() (driver.Conn, error) { return d.Open(dsn) }, most: make(chan struct{}, most)}
}

// get reads a row.
func (r *rowReaders) get(ctx context.Context, d *dialect, table, key, log string) (found, error) {
	select {
	case r.most <- struct{}{}:
	case <-ctx.Done():
		return found{}, ctx.Err()
	}
	defer func() { <-r.most }()
	one, err := r.take()
	if err != nil {
		return found{}, err
	}
	f, err := one.get(d, table, key, log)
	if err != nil {
		return found{}, errors.Join(err, one.conn.Close())
	}
	r.mu.Lock()
	r.idle = append(r.idle, one)
	r.mu.Unlock()
	return f, nil
}

func (r *rowReaders) take() (*rowReader, error) {
	r.mu.Lock()
	if n := len(r.idle); n > 0 {
		one := r.idle[n-1]
		r.idle = r.idle[:n-1]
		r.mu.Unlock()
		return one, nil
	}
	r.mu.Unlock()
	conn, err := r.open()
	if err != nil {
		return nil, fmt.Errorf("opening a connection to read: %w", err)
	}
	return &rowReader{conn: conn, gets: make(map[string]driver.StmtQueryContext), args: []driver.NamedValue{{Ordinal: 1}, {Ordinal: 2}}, dest: make([]driver.Value, 3)}, nil
}

// close closes the connections that nobody uses.
func (r *rowReaders) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, one := range r.idle {
		for _, s := range one.gets {
			if c, ok := s.(io.Closer); ok {
				errs = append(errs, c.Close())
			}
		}
		errs = append(errs, one.conn.Close())
	}
	r.idle = nil
	return errors.Join(errs...)
}

func (r *rowReader) get(d *dialect, table, key, log string) (f found, err error) {
	s, err := r.statement(d, table)
	if err != nil {
		return f, fmt.Errorf("preparing to read a row: %w", err)
	}
	r.args[0].Value, r.args[1].Value = key, log
	// WAL has readers wait for nobody, so that nobody has to be able to call them off.
	rows, err := s.QueryContext(context.Background(), r.args)
	if err != nil {
		return f, err
	}
	if err := rows.Next(r.dest); err != nil {
		if err == io.EOF {
			err = nil
		}
		return f, errors.Join(err, rows.Close())
	}
	applied, ok := r.dest[0].(int64)
	f.applied = sql.NullInt64{Int64: applied, Valid: ok}
	var version int64
	if r.dest[1] != nil {
		f.there = true
		version, _ = r.dest[1].(int64)
		f.version = uint64(version)
		switch v := r.dest[2].(type) {
		case string:
			f.value = []byte(v)
		case []byte:
			f.value = v
		default:
			ok = false
		}
	}
	if !ok {
		err = fmt.Errorf("a row of types %T, %T and %T", r.dest[0], r.dest[1], r.dest[2])
	}
	return f, errors.Join(err, rows.Close())
}

func (r *rowReader) statement(d *dialect, table string) (driver.StmtQueryContext, error) {
	if s := r.gets[table]; s != nil {
		return s, nil
	}
	prepared, err := r.conn.Prepare(d.get(table))
	if err != nil {
		return nil, err
	}
	s, ok := prepared.(driver.StmtQueryContext)
	if !ok {
		return nil, errors.Join(errors.ErrUnsupported, prepared.Close())
	}
	r.gets[table] = s
	return s, nil
}
