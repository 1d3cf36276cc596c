package postgres

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"skerry/internal/database"
)

// connTimeout bounds one connection's making.
const connTimeout = 5 * time.Second

// connect connects to one server. A nil dial is the system's.
func connect(ctx context.Context, addr string, s settings, dial database.DialFunc) (*pgconn.PgConn, error) {
	u := url.URL{Scheme: "postgres", Host: addr, Path: "/" + s.database, User: url.User(s.user), RawQuery: "sslmode=disable"}
	if s.password != "" {
		u.User = url.UserPassword(s.user, s.password)
	}
	config, err := pgconn.ParseConfig(u.String())
	if err != nil {
		return nil, fmt.Errorf("connecting to postgres at %s: %w", addr, err)
	}
	config.RuntimeParams = map[string]string{"application_name": "skerry"}
	config.Fallbacks = nil
	if dial != nil {
		config.DialFunc = pgconn.DialFunc(dial)
	}
	ctx, cancel := context.WithTimeout(ctx, connTimeout)
	defer cancel()
	return pgconn.ConnectConfig(ctx, config)
}

// rows asks one or more statements and returns the rows of the last one as text.
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

// oneRow is a single value, "" when there is none.
func oneRow(ctx context.Context, conn *pgconn.PgConn, sql string) (string, error) {
	text, err := rows(ctx, conn, sql)
	if err != nil || len(text) == 0 || len(text[0]) == 0 {
		return "", err
	}
	return text[0][0], nil
}

// inRecovery asks whether a server is a standby.
const inRecovery = "SELECT pg_is_in_recovery()"

// isTrue is PostgreSQL's true.
const isTrue = "t"

// Slots are named after their standby's address, so that clients learn from a primary
// which members there are.
const slotPrefix = "skerry_"

func slotOf(addr string) string {
	return slotPrefix + strings.NewReplacer(".", "_", ":", "__").Replace(addr)
}

// nodeOfSlot is the address that a slot is named after, "" for another's slot.
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
