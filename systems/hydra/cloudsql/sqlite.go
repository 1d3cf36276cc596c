package cloudsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sync"

	"modernc.org/sqlite"
)

// rowReaders read single SQLite rows below database/sql, which would take a third of the time.
type rowReaders struct {
	open func() (driver.Conn, error)
	most chan struct{} // bounds concurrent reads

	mu   sync.Mutex
	idle []*rowReader
}

type rowReader struct {
	conn     driver.Conn
	versions sqlite.FileControl
	rows     statements // select the row
	both     statements // select the row and the applied index
	args     []driver.NamedValue
	dest     []driver.Value
	seen     metaState
}

type statements map[string]driver.StmtQueryContext

// metaState is what a connection has read from hydra_meta, with SQLite's data version of the file at
// that time. The version changes when any process changes the file. While it is equal, hydra_meta is
// unchanged, and a read can skip it, which saves a fifth of its time:
//
//  1. hydra_meta said 1000 in version 7, and the member expects 1000.
//  2. An operator restores a copy of the file that is at 990.
//  3. A read finds the row in version 8, so the row is discarded and read again together with
//     the index, which is 990.
//
// The version belongs to the read transaction that found the row, so no change can fall between the two.
type metaState struct {
	state   uint32
	log     string
	applied int64
	valid   bool
}

func newRowReaders(d driver.Driver, dsn string, most int) *rowReaders {
	return &rowReaders{open: func() (driver.Conn, error) { return d.Open(dsn) }, most: make(chan struct{}, most)}
}

func (r *rowReaders) get(ctx context.Context, d *dialect, table, key, log string, known uint64) (foundRow, error) {
	select {
	case r.most <- struct{}{}:
	case <-ctx.Done():
		return foundRow{}, ctx.Err()
	}
	defer func() { <-r.most }()
	one, err := r.acquire()
	if err != nil {
		return foundRow{}, err
	}
	f, err := one.get(d, table, key, log, int64(known))
	if err != nil {
		return foundRow{}, errors.Join(err, one.conn.Close())
	}
	r.mu.Lock()
	r.idle = append(r.idle, one)
	r.mu.Unlock()
	return f, nil
}

func (r *rowReaders) acquire() (*rowReader, error) {
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
	versions, ok := conn.(sqlite.FileControl)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the state of SQLite's file: %w", errors.ErrUnsupported), conn.Close())
	}
	return &rowReader{conn: conn, versions: versions, rows: make(statements), both: make(statements),
		args: []driver.NamedValue{{Ordinal: 1}, {Ordinal: 2}}, dest: make([]driver.Value, 3)}, nil
}

func (r *rowReaders) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, one := range r.idle {
		errs = append(errs, one.rows.close(), one.both.close(), one.conn.Close())
	}
	r.idle = nil
	return errors.Join(errs...)
}

func (r *rowReader) get(d *dialect, table, key, log string, known int64) (f foundRow, err error) {
	if r.seen.valid && r.seen.log == log && r.seen.applied >= known {
		state, err := r.readRow(d, table, key, &f)
		if err != nil || state == r.seen.state {
			f.applied = sql.NullInt64{Int64: r.seen.applied, Valid: true}
			return f, err
		}
	}
	return r.readRowAndIndex(d, table, key, log)
}

func (r *rowReader) readRow(d *dialect, table, key string, f *foundRow) (state uint32, err error) {
	s, err := r.rows.prepare(r.conn, table, d.selectRow)
	if err != nil {
		return 0, err
	}
	r.args[0].Value = key
	return r.queryFirst(s, r.args[:1], r.dest[:2], func() error { return f.decode(r.dest) })
}

func (r *rowReader) readRowAndIndex(d *dialect, table, key, log string) (f foundRow, err error) {
	r.seen.valid = false
	s, err := r.both.prepare(r.conn, table, d.selectRowAndIndex)
	if err != nil {
		return f, err
	}
	r.args[0].Value, r.args[1].Value = key, log
	state, err := r.queryFirst(s, r.args, r.dest, func() error {
		applied, ok := r.dest[0].(int64)
		if !ok {
			return fmt.Errorf("an applied index of type %T", r.dest[0])
		}
		f.applied = sql.NullInt64{Int64: applied, Valid: true}
		if r.dest[1] == nil {
			return nil // no such row
		}
		return f.decode(r.dest[1:])
	})
	if err == nil && f.applied.Valid {
		r.seen = metaState{state, log, f.applied.Int64, true}
	}
	return f, err
}

func (r *rowReader) queryFirst(s driver.StmtQueryContext, args []driver.NamedValue, dest []driver.Value,
	take func() error) (state uint32, err error) {
	// Readers never wait in WAL mode, so the query needs no cancellation.
	rows, err := s.QueryContext(context.Background(), args)
	if err != nil {
		return 0, err
	}
	switch err = rows.Next(dest); {
	case err == nil:
		err = take()
	case err == io.EOF:
		err = nil
	}
	// Until the rows are closed, this is the version of the transaction that read them.
	state, failed := r.versions.FileControlDataVersion("main")
	return state, errors.Join(err, failed, rows.Close())
}

func (f *foundRow) decode(from []driver.Value) error {
	version, ok := from[0].(int64)
	f.there, f.version = true, uint64(version)
	switch v := from[1].(type) {
	case string:
		f.value = []byte(v)
	case []byte:
		f.value = v
	default:
		ok = false
	}
	if !ok {
		return fmt.Errorf("a row of types %T and %T", from[0], from[1])
	}
	return nil
}

func (s statements) prepare(conn driver.Conn, table string, query func(table string) string) (driver.StmtQueryContext, error) {
	if one := s[table]; one != nil {
		return one, nil
	}
	prepared, err := conn.Prepare(query(table))
	if err != nil {
		return nil, fmt.Errorf("preparing to read a row: %w", err)
	}
	one, ok := prepared.(driver.StmtQueryContext)
	if !ok {
		return nil, errors.Join(errors.ErrUnsupported, prepared.Close())
	}
	s[table] = one
	return one, nil
}

func (s statements) close() error {
	var errs []error
	for _, one := range s {
		if c, ok := one.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}
