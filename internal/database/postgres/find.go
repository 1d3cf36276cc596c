package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"skerry/internal/base/linger"
	"skerry/internal/load"
)

// seekPause keeps a worker whose primary is gone from connecting to every member with
// every operation: each connection is a process of the server's.
const seekPause = 100 * time.Millisecond

// errNoPrimary says that no server that was reached takes writes.
var errNoPrimary = errors.New("none of the servers takes writes")

// candidate is a server that answered.
type candidate struct {
	conn    *pgconn.PgConn
	addr    string
	standby bool
	err     error
}

// findLane connects to all servers at the same time and keeps the connection that is wanted:
// to the primary, to the standby or the server that answered first. The others are
// closed.
func (c *client) findLane(ctx context.Context, want string) (*lane, error) {
	if err := linger.For(ctx, time.Until(c.sought.Add(seekPause))); err != nil {
		return nil, load.Failed(classNoPrimary, "", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	found := make(chan candidate)
	addrs := c.members()
	var asking sync.WaitGroup
	for _, addr := range addrs {
		asking.Go(func() { found <- queryDirectory(ctx, addr, c.settings) })
	}
	var chosen, second candidate
	var failed error
	for range addrs {
		got := <-found
		switch {
		case got.err != nil:
			if failed == nil || ctx.Err() == nil {
				failed = got.err
			}
			continue
		case chosen.conn == nil && (want == readNearest || got.standby == (want == readStandby)):
			chosen = got
			if want != readStandby {
				cancel() // the others need not answer
			}
		case want == readStandby && second.conn == nil:
			second = got // without a standby the primary will do
		default:
			abandon(got.conn)
		}
	}
	asking.Wait()
	if chosen.conn == nil {
		chosen, second = second, candidate{}
	}
	abandon(second.conn)
	if chosen.conn == nil {
		c.sought = time.Now()
		return nil, noPrimary(failed)
	}
	return &lane{conn: chosen.conn, addr: chosen.addr, statements: make(map[string]*statement)}, nil
}

// noPrimary is what became of an operation that found nobody to do it.
func noPrimary(failed error) error {
	if failed == nil {
		return load.Failed(classNoPrimary, "", errNoPrimary)
	}
	return load.Failed(classNoPrimary, "", fmt.Errorf("%w; one says: %w", errNoPrimary, failed))
}

// queryDirectory connects to a server and asks what it is.
func queryDirectory(ctx context.Context, addr string, s settings) candidate {
	conn, err := connect(ctx, addr, s, nil)
	if err != nil {
		return candidate{err: dialError(addr, err)}
	}
	standby, err := oneRow(ctx, conn, inRecovery)
	if err != nil {
		abandon(conn)
		return candidate{err: dialError(addr, err)}
	}
	return candidate{conn: conn, addr: addr, standby: standby == isTrue}
}

// farewell bounds the goodbye to a server.
const farewell = time.Second

// abandon closes a connection that is not needed; nil is none.
func abandon(conn *pgconn.PgConn) {
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	_ = conn.Close(ctx) // nothing was outstanding on it
}
