package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// schemaLock is the advisory lock for schema changes: concurrent ones fail.
const schemaLock = 0x736b65727279

const undefinedTable = "42P01"

// ensureTable creates the table with the workload's fields, or adds those that it lacks, once for all clients that share
// the directory.
func (d *directory) ensureTable(ctx context.Context, conn *pgconn.PgConn, s settings) error {
	d.schema.Lock()
	defer d.schema.Unlock()
	if d.hasTable {
		return nil
	}
	err := ensureTable(ctx, conn, s.table, s.prefix, s.fields)
	d.hasTable = err == nil
	return err
}

func ensureTable(ctx context.Context, conn *pgconn.PgConn, table, prefix string, fields int) error {
	there, err := oneRow(ctx, conn, fmt.Sprintf("SELECT count(*) FROM information_schema.columns WHERE table_name = %s AND column_name = %s",
		literal(table), literal(prefix+strconv.Itoa(fields-1))))
	if err != nil {
		return fmt.Errorf("looking for the table %s: %w", table, err)
	}
	if there != "0" {
		return nil
	}
	name := pgx.Identifier{table}.Sanitize()
	var add []string
	for i := range fields {
		add = append(add, "ADD COLUMN IF NOT EXISTS "+pgx.Identifier{prefix + strconv.Itoa(i)}.Sanitize()+" bytea")
	}
	_, err = rows(ctx, conn, fmt.Sprintf("BEGIN; SELECT pg_advisory_xact_lock(%d); "+
		"CREATE TABLE IF NOT EXISTS %s (%s varchar(255) PRIMARY KEY); ALTER TABLE %s %s; COMMIT",
		schemaLock, name, keyColumn, name, strings.Join(add, ", ")))
	if err != nil {
		return fmt.Errorf("making the table %s: %w", table, err)
	}
	return nil
}

func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// count counts the rows of a table, 0 if there is no table.
func count(ctx context.Context, conn *pgconn.PgConn, table string) (int64, error) {
	text, err := oneRow(ctx, conn, "SELECT count(*) FROM "+pgx.Identifier{table}.Sanitize())
	var e *pgconn.PgError
	if errors.As(err, &e) && e.Code == undefinedTable {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}
