package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"skerry/internal/database"
	"skerry/internal/load"
)

const connTimeout = 5 * time.Second

// connect connects to one server. A nil dial means the system's.
func connect(ctx context.Context, addr string, s settings, dial database.DialFunc) (*pgconn.PgConn, error) {
	login, err := database.ReadLogin(s.access, s.user, s.password)
	if err != nil {
		return nil, fmt.Errorf("connecting to postgres at %s: %w", addr, err)
	}
	u := url.URL{Scheme: "postgres", Host: addr, Path: "/" + s.database, User: url.User(login.User), RawQuery: "sslmode=disable"}
	config, err := pgconn.ParseConfig(u.String())
	if err != nil {
		return nil, fmt.Errorf("connecting to postgres at %s: %w", addr, err)
	}
	config.RuntimeParams = map[string]string{"application_name": "skerry"}
	config.Fallbacks, config.TLSConfig = nil, login.TLSTo(addr)
	if password := login.Password.Reveal(); password != "" {
		config.Password = password
	}
	if dial != nil {
		config.DialFunc = pgconn.DialFunc(dial)
	}
	ctx, cancel := context.WithTimeout(ctx, connTimeout)
	defer cancel()
	return pgconn.ConnectConfig(ctx, config)
}

// rows runs one or more statements and returns the rows of the last one as text.
func rows(ctx context.Context, conn *pgconn.PgConn, sql string) ([][]string, error) {
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil || len(results) == 0 {
		return nil, err
	}
	var text [][]string
	for _, row := range results[len(results)-1].Rows {
		var line []string
		for _, value := range row {
			line = append(line, string(value))
		}
		text = append(text, line)
	}
	return text, nil
}

// oneRow returns a single value, "" if there is none.
func oneRow(ctx context.Context, conn *pgconn.PgConn, sql string) (string, error) {
	text, err := rows(ctx, conn, sql)
	if err != nil || len(text) == 0 || len(text[0]) == 0 {
		return "", err
	}
	return text[0][0], nil
}

const inRecovery = "SELECT pg_is_in_recovery()"

const isTrue = "t"

// Slots are named after their standby's address, so that clients learn the members from a primary.
const slotPrefix = "skerry_"

func slotOf(addr string) string {
	return slotPrefix + strings.NewReplacer(".", "_", ":", "__").Replace(addr)
}

// nodeOfSlot returns the address in a slot's name, "" for other slots.
func nodeOfSlot(slot string) string {
	name, ours := strings.CutPrefix(slot, slotPrefix)
	host, port, ok := strings.Cut(name, "__")
	if _, err := strconv.ParseUint(port, 10, 16); !ours || !ok || err != nil {
		return ""
	}
	return strings.ReplaceAll(host, "_", ".") + ":" + port
}

// directoryOf adds the addresses of a primary's standbys to a list.
func directoryOf(ctx context.Context, conn *pgconn.PgConn, known []string) ([]string, error) {
	slots, err := rows(ctx, conn, "SELECT slot_name FROM pg_replication_slots")
	if err != nil {
		return known, err
	}
	for _, row := range slots {
		if addr := nodeOfSlot(row[0]); addr != "" && !slices.Contains(known, addr) {
			known = append(known, addr)
		}
	}
	return known, nil
}

// Error classes in addition to those of package database and PostgreSQL's codes ("sqlstate_53100").
const (
	classNoPrimary = "no_primary" // no server that was reached takes writes
	classReadOnly  = "read_only"  // the server is a standby
	classStarting  = "starting"   // starting or shutting down: no connections yet, or any more
	classShutdown  = "shutdown"   // the server ended the connection
	classFull      = "disk_full"
	classConflict  = "conflict" // with another transaction, or with recovery on a standby
	classCrowded   = "too_many_connections"
)

var codes = map[string]string{
	"25006": classReadOnly, "57P03": classStarting, "57P01": classShutdown, "57P02": classShutdown,
	"53100": classFull, "53300": classCrowded, "40001": classConflict, "40P01": classConflict,
}

// severityError is that of an error after which the connection continues and the statement was rolled back.
const severityError = "ERROR"

func classify(addr string, err error) error {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		class := codes[e.Code]
		if class == "" {
			class = "sqlstate_" + e.Code
		}
		if e.SeverityUnlocalized == severityError {
			return load.Failed(class, addr, err)
		}
		// A server that shuts down may have committed without time to answer.
		return load.Unknown(class, addr, err)
	}
	if pgconn.SafeToRetry(err) {
		return load.Failed(database.ErrorClass(err), addr, err)
	}
	return load.Unknown(database.ErrorClass(err), addr, err)
}

func dialError(addr string, err error) error {
	var e *pgconn.PgError
	class := database.DialErrorClass(err)
	if errors.As(err, &e) && codes[e.Code] != "" {
		class = codes[e.Code]
	}
	return load.Failed(class, addr, fmt.Errorf("connecting to postgres at %s: %w", addr, err))
}

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
		return fmt.Errorf("finding the table %s: %w", table, err)
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
		return fmt.Errorf("creating the table %s: %w", table, err)
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
