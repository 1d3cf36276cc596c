package cloudsql

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	_ "modernc.org/sqlite" // driver sqlite

	"skerry/internal/base/advice"
)

// dialect is what databases differ in.
type dialect struct {
	name  string
	quote string // around names
	// numbered says that placeholders are $1, $2, ... in place of ?.
	numbered bool
	// types of keys (compared by their bytes), of texts and of indices.
	key, text, index, request string
	// conflict makes an insert replace the row that is there.
	conflict string
	// insertOnce writes the row of hydra_meta unless it is there.
	insertOnce string
	// snapshot is the isolation of a transaction that sees one state.
	snapshot sql.IsolationLevel
	// options follow a table's columns.
	options string
}

const metaValues = "INSERT INTO hydra_meta (id, format, cluster, applied, tables_at, holder, log_id, outcomes_after) VALUES (1, ?, ?, 0, 0, '', '', 0)"

// Both follow the SQL standard's idea of a conflict.
const onConflict = ` ON CONFLICT ("key") DO UPDATE SET "version" = excluded."version", "value" = excluded."value"`

var (
	sqliteDialect = dialect{
		name: "sqlite", quote: `"`, key: "TEXT", text: "TEXT", index: "INTEGER", request: "TEXT",
		conflict: onConflict, insertOnce: metaValues + " ON CONFLICT DO NOTHING",
	}
	postgresDialect = dialect{
		name: "postgres", quote: `"`, numbered: true,
		key: `TEXT COLLATE "C"`, text: "TEXT", index: "BIGINT", request: `TEXT COLLATE "C"`,
		conflict: onConflict, insertOnce: metaValues + " ON CONFLICT DO NOTHING",
		snapshot: sql.LevelRepeatableRead,
	}
	mysqlDialect = dialect{
		// Collations of MySQL take "a" and "a " for the same: keys are bytes.
		name: "mysql", quote: "`", key: "VARBINARY(512)", text: "LONGTEXT", index: "BIGINT", request: "VARBINARY(128)",
		conflict:   " ON DUPLICATE KEY UPDATE `version` = VALUES(`version`), `value` = VALUES(`value`)",
		insertOnce: strings.Replace(metaValues, "INSERT", "INSERT IGNORE", 1),
		snapshot:   sql.LevelRepeatableRead,
		options:    " ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
	}
)

// schema are the statements that make Hydra's own tables.
func (d *dialect) schema() []string {
	name := "VARCHAR(200)"
	return []string{
		"CREATE TABLE IF NOT EXISTS hydra_meta (id INTEGER PRIMARY KEY, format INTEGER NOT NULL, cluster " + name + " NOT NULL, applied " + d.index +
			" NOT NULL, tables_at " + d.index + " NOT NULL, holder " + name + " NOT NULL, " + strings.Join(d.addedColumns(), ", ") + ")" + d.options,
		"CREATE TABLE IF NOT EXISTS hydra_tables (name " + name + " PRIMARY KEY)" + d.options,
		"CREATE TABLE IF NOT EXISTS hydra_outcomes (idx " + d.index + " PRIMARY KEY, request " + d.request + ", outcome " + d.text + " NOT NULL" +
			d.inlineIndex() + ")" + d.options,
		d.indexStatement(),
	}
}

// addedColumns are columns of hydra_meta that the first versions did not have: the log's name, and
// after which entry every failure is in hydra_outcomes, of which nobody can tell before.
func (d *dialect) addedColumns() []string {
	return []string{"log_id VARCHAR(64) NOT NULL DEFAULT ''", "outcomes_after " + d.index + " NOT NULL"}
}

// MySQL has no CREATE INDEX IF NOT EXISTS; the others have no index inside a table.
func (d *dialect) inlineIndex() string {
	if d.name == "mysql" {
		return ", INDEX hydra_outcomes_request (request)"
	}
	return ""
}

func (d *dialect) indexStatement() string {
	if d.name == "mysql" {
		return "SELECT 1"
	}
	return "CREATE INDEX IF NOT EXISTS hydra_outcomes_request ON hydra_outcomes (request) WHERE request IS NOT NULL"
}

// createTable makes a table of rows.
func (d *dialect) createTable(table string) string {
	return "CREATE TABLE IF NOT EXISTS " + d.quoteName(table) + " (" + d.quoteName("key") + " " + d.key + " PRIMARY KEY NOT NULL, " +
		d.quoteName("version") + " " + d.index + " NOT NULL, " + d.quoteName("value") + " " + d.text + " NOT NULL)" + d.options
}

// quoteName quotes a name. Names are letters, digits and underscores: command.ValidTable.
func (d *dialect) quoteName(n string) string { return d.quote + n + d.quote }

// bind writes placeholders as the database wants them.
func (d *dialect) bind(query string, n int) string {
	if !d.numbered {
		return query
	}
	var b strings.Builder
	for i := 1; i <= n; i++ {
		before, after, _ := strings.Cut(query, "?")
		b.WriteString(before)
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(i))
		query = after
	}
	b.WriteString(query)
	return b.String()
}

// busyTimeout is how long SQLite waits for another process' write.
const busyTimeout = 10 * time.Second

// openPools opens a pool that writes and one that reads.
func openPools(c Config, silence *silence) (d *dialect, path string, write, read *sql.DB, err error) {
	scheme, rest, ok := strings.Cut(c.URL, ":")
	if !ok || strings.HasPrefix(c.URL, "/") || strings.HasPrefix(c.URL, ".") {
		scheme, rest = "sqlite", c.URL
	}
	switch scheme {
	case "sqlite":
		path = strings.TrimPrefix(rest, "//")
		write, read, err = connectSQLite(c, path)
		return &sqliteDialect, path, write, read, err
	case "postgres", "postgresql":
		write, err = connectPostgres(c, silence)
		d = &postgresDialect
	case "mysql", "mariadb":
		write, err = connectMySQL(c, silence)
		d = &mysqlDialect
	default:
		err = advice.With(fmt.Errorf("%w: %s", ErrURL, Redacted(c.URL)), "known are sqlite:PATH, postgres://... and mysql://...")
	}
	if err != nil {
		return nil, "", nil, nil, fmt.Errorf("%w: %w", ErrURL, err)
	}
	return d, "", write, write, nil
}

// connectSQLite opens a file.
func connectSQLite(c Config, path string) (write, read *sql.DB, err error) {
	if path == "" {
		return nil, nil, fmt.Errorf("%w: sqlite: needs a path", ErrURL)
	}
	dsn := sqliteDSN(c, path)
	if write, err = sql.Open("sqlite", dsn+"&_txlock=immediate"); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrURL, err)
	}
	write.SetMaxOpenConns(3) // one applies, one prepares statements for it, one is to spare
	write.SetMaxIdleConns(3)
	if read, err = sql.Open("sqlite", dsn); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrURL, err)
	}
	read.SetMaxOpenConns(c.Readers + 1)
	read.SetMaxIdleConns(c.Readers + 1)
	return write, read, nil
}

// sqliteDSN is a file as SQLite's driver takes it. Without Durable commits do not wait for
// the disk: the truth is in the log before an entry is applied.
func sqliteDSN(c Config, path string) string {
	synchronous := "NORMAL"
	if c.Durable {
		synchronous = "FULL"
	}
	query := url.Values{"_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()), "journal_mode(WAL)", "synchronous(" + synchronous + ")",
		"cache_size(-16384)", "mmap_size(268435456)", "temp_store(MEMORY)", "journal_size_limit(67108864)",
	}}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + query.Encode()
}

// Redacted is a URL without its password.
func Redacted(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return strings.SplitN(text, ":", 2)[0] + ":..."
	}
	return u.Redacted()
}

// statementKey names a prepared statement: what it does, to which table, with how many
// rows.
type statementKey struct {
	kind, table string
	n           int
}

// writeStatement is a prepared statement of the writing connection. query is asked for it, and
// for the number of its placeholders, when it is not there yet.
func (s *Store) writeStatement(ctx context.Context, key statementKey, query func() (string, int)) (*sql.Stmt, error) {
	return s.cachedStatement(ctx, s.write, key, query)
}

// readStatement is a prepared statement of the reading connections.
func (s *Store) readStatement(ctx context.Context, key statementKey, query func() (string, int)) (*sql.Stmt, error) {
	key.kind += "/read"
	return s.cachedStatement(ctx, s.read, key, query)
}

func (s *Store) cachedStatement(ctx context.Context, db *sql.DB, key statementKey, query func() (string, int)) (*sql.Stmt, error) {
	s.mu.Lock()
	stmt := s.statements[key]
	s.mu.Unlock()
	if stmt != nil {
		return stmt, nil
	}
	text, n := query()
	// On a connection beside the transaction that wants it; database/sql prepares it on
	// that one's when it is used there.
	stmt, err := db.PrepareContext(ctx, s.dialect.bind(text, n))
	if err != nil {
		return nil, fmt.Errorf("preparing %s: %w", key.kind, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if there := s.statements[key]; there != nil {
		return there, stmt.Close()
	}
	s.statements[key] = stmt
	return stmt, nil
}

// chunks are how many rows go into one statement: few sizes, so that few statements are
// prepared.
var chunks = []int{128, 16, 1}

// chunkSize is the largest that n rows fill.
func chunkSize(n int) int {
	for _, c := range chunks {
		if n >= c {
			return c
		}
	}
	return 1
}

func placeholders(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }

func tuples(n int) string { return strings.TrimSuffix(strings.Repeat("(?,?,?),", n), ",") }
