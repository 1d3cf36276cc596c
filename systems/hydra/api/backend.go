package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Want is how fresh a read must be.
type Want struct {
	Read      Read
	Staleness time.Duration // of bounded reads
}

// Range says which rows a scan returns, in the order of keys' bytes.
type Range struct {
	From   string // the first key; with Behind the one before it
	Until  string // the key behind the last one, "" for no end
	Behind bool
	Limit  int
}

// Backend is what the server asks. Errors are *Problem, *Elsewhere, or a fault of the
// member's own.
type Backend interface {
	Get(ctx context.Context, table, key string, w Want) (Row, Freshness, error)
	Scan(ctx context.Context, table string, r Range, w Want) ([]Row, Freshness, error)
	Count(ctx context.Context, table string, w Want) (int64, Freshness, error)
	Tables(ctx context.Context, w Want) ([]string, Freshness, error)
	// Write does a transaction that is normal (Transaction.Normalize).
	Write(ctx context.Context, t *Transaction, a Ack) (Written, error)

	Status(ctx context.Context) Status
	// Ready returns nil when the member serves reads and writes.
	Ready(ctx context.Context) error
	AddMember(ctx context.Context, m Member) (Member, error)
	RemoveMember(ctx context.Context, id uint64) error
	Transfer(ctx context.Context, to string) error
	// Snapshot writes the database's snapshot: store.ReadSnapshot reads it.
	Snapshot(ctx context.Context, w io.Writer) error
	// Progress waits until the database has applied an index, at most as long as ctx, and
	// returns the index that it has.
	Progress(ctx context.Context, index uint64) uint64
}

// Quick is a Backend some of whose reads take microseconds and wait for nobody: the server
// does them in their turn, without a goroutine of their own.
type Quick interface {
	Quick(w Want) bool
}

// Elsewhere says that another member can answer, while this one's database is being
// rebuilt or out of reach. The server passes the request on, once.
type Elsewhere struct {
	Member, API string
	Why         error
}

func (e *Elsewhere) Error() string {
	return fmt.Sprintf("%v; %s at %s can answer", e.Why, e.Member, e.API)
}

func (e *Elsewhere) Unwrap() error { return e.Why }

// Error is the problem's message.
func (p *Problem) Error() string { return p.Message }

// Problemf makes a problem.
func Problemf(code, format string, args ...any) *Problem {
	return &Problem{Code: code, Message: fmt.Sprintf(format, args...)}
}

// statuses are the HTTP statuses of codes.
var statuses = map[string]int{
	CodeBadRequest: http.StatusBadRequest, CodeUnauthorized: http.StatusUnauthorized, CodeForbidden: http.StatusForbidden,
	CodeNotFound: http.StatusNotFound, CodeUnknownTable: http.StatusNotFound,
	CodeCheckFailed: http.StatusConflict, CodeBadField: http.StatusConflict, CodeTooLarge: http.StatusRequestEntityTooLarge,
	CodeMisdirected: http.StatusMisdirectedRequest, CodeForeignHost: http.StatusMisdirectedRequest, CodeInternal: http.StatusInternalServerError,
	CodeUnavailable: http.StatusServiceUnavailable, CodeOverloaded: http.StatusServiceUnavailable, CodeDraining: http.StatusServiceUnavailable,
	CodeInDoubt: http.StatusGatewayTimeout, CodeNotReached: http.StatusGatewayTimeout,
}
