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

type dialect struct {
	name     string
	quote    string // around names
	numbered bool
	// Column types; keys compare by bytes.
	key, text, index, request string
	conflict                  string
	insertOnce                string
	// snapshot is the isolation level for consistent reads.
	snapshot sql.IsolationLevel
	options  string
}

const metaValues = "INSERT INTO hydra_meta (id, format, cluster, applied, tables_at, holder, log_id, outcomes_after) " +
	"VALUES (1, ?, ?, 0, 0, '', '', 0)"

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
		// MySQL's collations treat "a" and "a " as equal, so keys are binary.
		name: "mysql", quote: "`", key: "VARBINARY(512)", text: "LONGTEXT", index: "BIGINT", request: "VARBINARY(128)",
		conflict:   " ON DUPLICATE KEY UPDATE `version` = VALUES(`version`), `value` = VALUES(`value`)",
		insertOnce: strings.Replace(metaValues, "INSERT", "INSERT IGNORE", 1),
		snapshot:   sql.LevelRepeatableRead,
		options:    " ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
	}
)

// schema returns the statements that create Hydra's own tables. log_id is the log's name, outcomes_after the entry after which
// hydra_outcomes has every failure.
func (d *dialect) schema() []string {
	name := "VARCHAR(200)"
	return []string{
		"CREATE TABLE IF NOT EXISTS hydra_meta (id INTEGER PRIMARY KEY, format INTEGER NOT NULL, cluster " + name +
			" NOT NULL, applied " + d.index +
			" NOT NULL, tables_at " + d.index + " NOT NULL, holder " + name + " NOT NULL, log_id VARCHAR(64) NOT NULL DEFAULT '', outcomes_after " +
			d.index + " NOT NULL)" + d.options,
		"CREATE TABLE IF NOT EXISTS hydra_tables (name " + name + " PRIMARY KEY)" + d.options,
		"CREATE TABLE IF NOT EXISTS hydra_outcomes (idx " + d.index + " PRIMARY KEY, request " + d.request + ", outcome " + d.text + " NOT NULL" +
			d.inlineIndex() + ")" + d.options,
		d.indexStatement(),
	}
}

// inlineIndex is for MySQL, which has no CREATE INDEX IF NOT EXISTS.
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

func (d *dialect) createTable(table string) string {
	return "CREATE TABLE IF NOT EXISTS " + d.quoteName(table) + " (" + d.quoteName("key") + " " + d.key + " PRIMARY KEY NOT NULL, " +
		d.quoteName("version") + " " + d.index + " NOT NULL, " + d.quoteName("value") + " " + d.text + " NOT NULL)" + d.options
}

func (d *dialect) quoteName(n string) string { return d.quote + n + d.quote }

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

const busyTimeout = 10 * time.Second

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
		err = advice.With(fmt.Errorf("%w: %s", ErrURL, Redacted(c.URL)), "use sqlite:PATH, postgres://... or mysql://...")
	}
	if err != nil {
		return nil, "", nil, nil, fmt.Errorf("%w: %w", ErrURL, err)
	}
	return d, "", write, write, nil
}

func connectSQLite(c Config, path string) (write, read *sql.DB, err error) {
	if path == "" {
		return nil, nil, fmt.Errorf("%w: sqlite: needs a path", ErrURL)
	}
	dsn := sqliteDSN(c, path)
	if write, err = sql.Open("sqlite", dsn+"&_txlock=immediate"); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrURL, err)
	}
	write.SetMaxOpenConns(3) // the applier, its statement preparation, a spare
	write.SetMaxIdleConns(3)
	if read, err = sql.Open("sqlite", dsn); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrURL, err)
	}
	read.SetMaxOpenConns(c.Readers + 1)
	read.SetMaxIdleConns(c.Readers + 1)
	return write, read, nil
}

// sqliteDSN returns the driver's name for a file. The log has every entry, so only Durable commits wait for the disk.
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

// Redacted returns a URL without its password.
func Redacted(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return strings.SplitN(text, ":", 2)[0] + ":..."
	}
	return u.Redacted()
}

type statementKey struct {
	kind, table string
	n           int
}

// writeStatement returns a prepared statement. query returns its text and placeholders, once per key.
func (s *Store) writeStatement(ctx context.Context, key statementKey, query func() (string, int)) (*sql.Stmt, error) {
	return s.cachedStatement(ctx, s.write, key, query)
}

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
	// This prepares on a second connection. database/sql prepares again on the transaction's connection at first use.
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

// chunks are the numbers of rows per statement. Few sizes keep the number of prepared statements low.
var chunks = []int{128, 16, 1}

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
