package cloudsql

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// statementKey names a prepared statement: what it does, to which table, with how many
// rows.
type statementKey struct {
	kind, table string
	n           int
}

// statement is a prepared statement of the writing connection. query is asked for it, and
// for the number of its placeholders, when it is not there yet.
func (s *Store) statement(ctx context.Context, key statementKey, query func() (string, int)) (*sql.Stmt, error) {
	return s.prepared(ctx, s.write, key, query)
}

// reading is a prepared statement of the reading connections.
func (s *Store) reading(ctx context.Context, key statementKey, query func() (string, int)) (*sql.Stmt, error) {
	key.kind += "/read"
	return s.prepared(ctx, s.read, key, query)
}

func (s *Store) prepared(ctx context.Context, db *sql.DB, key statementKey, query func() (string, int)) (*sql.Stmt, error) {
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

// chunk is the largest that n rows fill.
func chunk(n int) int {
	for _, c := range chunks {
		if n >= c {
			return c
		}
	}
	return 1
}

func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }

func tuples(n int) string { return strings.TrimSuffix(strings.Repeat("(?,?,?),", n), ",") }
