package cloudsql

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// DefaultTimeout is for how long a server may be silent while it is asked.
const DefaultTimeout = 5 * time.Second

// leftOpen is after how many timeouts of ours a server ends a transaction of which it hears
// nothing. A member that is cut off cannot end its own, which would keep the row of the
// applied index locked until the server's TCP gives up, hours later.
const leftOpen = 4

// limitPool bounds a pool of connections to a server.
func limitPool(db *sql.DB, c Config) {
	db.SetMaxOpenConns(c.Readers + 2) // one writes, one copies
	db.SetMaxIdleConns(c.Readers + 2)
	db.SetConnMaxIdleTime(c.Timeout) // well before the server's own bound ends them
}

func connectPostgres(c Config, s *silence) (*sql.DB, error) {
	cfg, err := pgx.ParseConfig(c.URL)
	if err != nil {
		return nil, err
	}
	cfg.DialFunc = s.dial
	end := "SET idle_in_transaction_session_timeout = " + strconv.FormatInt((leftOpen*c.Timeout).Milliseconds(), 10)
	asleep := func(_ context.Context, p stdlib.ShouldPingParams) bool {
		return p.IdleDuration > time.Second && !s.silent.Load() // else the question itself finds out
	}
	db := stdlib.OpenDB(*cfg, stdlib.OptionShouldPing(asleep), stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, end); err != nil {
			return fmt.Errorf("bounding what is left open: %w", err)
		}
		return nil
	}))
	limitPool(db, c)
	return db, nil
}

func connectMySQL(c Config, s *silence) (*sql.DB, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, err
	}
	cfg := mysql.NewConfig()
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.Net, cfg.Addr, cfg.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	if socket := u.Query().Get("socket"); socket != "" {
		cfg.Net, cfg.Addr = "unix", socket
	}
	cfg.Collation = "utf8mb4_bin"
	// Affected rows are those that matched: the compare-and-set counts them.
	cfg.ClientFoundRows = true
	if u.Query().Get("tls") != "" {
		cfg.TLSConfig = u.Query().Get("tls")
	}
	cfg.Timeout = c.Timeout
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) { return s.dial(ctx, network, addr) }
	cfg.Params = map[string]string{"wait_timeout": strconv.Itoa(int(max(1, (leftOpen * c.Timeout).Seconds())))}
	cfg.Logger = &mysql.NopLogger{} // what it says comes back as an error
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	limitPool(db, c)
	return db, nil
}
