// Package api is Hydra's HTTP/JSON interface: its types, its server, and the document
// (OpenAPI) that describes both. The server asks a Backend, which is a member of the
// data layer, or a SQL database by itself.
//
//	GET    /v1/tables                          names of the tables
//	PUT    /v1/tables/{table}                  create
//	DELETE /v1/tables/{table}                  drop
//	POST   /v1/tables/{table}/clear            remove all rows
//	GET    /v1/tables/{table}/count
//	GET    /v1/tables/{table}/rows             scan: from, after, prefix, limit
//	GET    /v1/tables/{table}/rows/{key}
//	PUT    /v1/tables/{table}/rows/{key}       replace; ?if_version=N, ?if_absent=true
//	PATCH  /v1/tables/{table}/rows/{key}       merge into a row that exists
//	DELETE /v1/tables/{table}/rows/{key}
//	POST   /v1/transactions                    checks + writes, atomic
//	GET    /v1/members                         POST adds, DELETE /v1/members/{id} removes
//	POST   /v1/leader                          hand over
//	GET    /v1/stream                          rows and transactions as frames: package wire
//	GET    /status /healthz /readyz /metrics /openapi.yaml
//
// Reads take ?read=linearizable (default), local or bounded with ?max_staleness_ms=N;
// writes take ?ack=committed (default), applied or everywhere, and an Idempotency-Key
// header.
package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"skerry/systems/hydra/command"
)

// Transactions are those of the log.
type (
	Transaction = command.Transaction
	Check       = command.Check
	Write       = command.Write
)

// Read is how fresh a read must be.
type Read string

// Reads.
const (
	// Linearizable reads see every write that was acknowledged before they began.
	Linearizable Read = "linearizable"
	// Local reads are answered by the cloud's database as it is; headers say how old.
	Local Read = "local"
	// Bounded reads are local ones where the database is at most so old, else linearizable.
	Bounded Read = "bounded"
)

// Reads and Acks are in the order of their codes in streams (package wire), which must never
// change.
var (
	Reads = []Read{Linearizable, Local, Bounded}
	Acks  = []Ack{Committed, Applied, Everywhere}
)

// Ack is what a write waits for.
type Ack string

// Acknowledgements. A write whose outcome depends on rows (checks, merge, add, an
// idempotency key) is answered by the database, so committed waits for applied there.
const (
	Committed  Ack = "committed"  // a majority of the members has it on disk
	Applied    Ack = "applied"    // and this cloud's database has it
	Everywhere Ack = "everywhere" // and every cloud's database has it
)

// Headers of requests and answers.
const (
	HeaderRequestID = "Idempotency-Key"
	HeaderMember    = "Hydra-Member"       // who answered
	HeaderCloud     = "Hydra-Cloud"        // whose database answered
	HeaderApplied   = "Hydra-Applied"      // index in the log that the database had applied
	HeaderLag       = "Hydra-Lag-Entries"  // committed entries that it had not
	HeaderStaleness = "Hydra-Staleness-Ms" // at most so old is what was read
	HeaderVersion   = "Hydra-Version"      // of the row, or of the write
	HeaderForwarded = "Hydra-Forwarded"    // the member that passed a read on to another cloud
)

// Row is a row of a table.
type Row struct {
	Key string `json:"key"`
	// Version is the index in the log of the transaction that wrote it last.
	Version uint64          `json:"version"`
	Value   json.RawMessage `json:"value"`
}

// Rows is the answer to a scan.
type Rows struct {
	Rows []Row `json:"rows"`
	// Next is the "after" of the next page; "" on the last.
	Next string `json:"next,omitempty"`
}

// Written is the answer to a write.
type Written struct {
	Version uint64 `json:"version"`
	Ack     Ack    `json:"ack"` // what it waited for
}

// Count is the answer to a count.
type Count struct {
	Rows int64 `json:"rows"`
}

// Tables is the answer to a list.
type Tables struct {
	Tables []string `json:"tables"`
}

// Member is a member as the cluster has agreed on it.
type Member struct {
	ID    uint64 `json:"id"`
	Name  string `json:"name"`
	Cloud string `json:"cloud"`
	// Peer is where other members reach it, API where clients do (host:port).
	Peer string `json:"peer"`
	API  string `json:"api,omitempty"`
	// Witness has a vote and the log but no database.
	Witness bool `json:"witness,omitempty"`
	Learner bool `json:"learner,omitempty"`
}

// Members is the answer to a list.
type Members struct {
	Members []Member `json:"members"`
}

// LeaderChange asks for another leader.
type LeaderChange struct {
	To string `json:"to"` // a member's name
}

// Status is one member's view.
type Status struct {
	Cluster string `json:"cluster"`
	Member  string `json:"member"`
	Cloud   string `json:"cloud"`
	Witness bool   `json:"witness,omitempty"`
	// Role is leader, follower, candidate or learner; direct without Raft.
	Role   string `json:"role"`
	Leader string `json:"leader,omitempty"` // a member's name
	Term   uint64 `json:"term"`
	Commit uint64 `json:"commit"`
	// Applied is the index that this cloud's database has.
	Applied uint64 `json:"applied"`
	// ElectionMS is how long this member goes without its leader before it stands for
	// election, 0 without Raft.
	ElectionMS float64    `json:"election_timeout_ms,omitempty"`
	Draining   bool       `json:"draining,omitempty"`
	Log        Log        `json:"log"`
	Databases  []Database `json:"databases"`
	Members    []Member   `json:"members"`
	Version    string     `json:"version"`
	// Certificate is this member's own, with TLS.
	Certificate *Certificate `json:"certificate,omitempty"`
	// Problem is what keeps this member's cloud from serving, "" when nothing does.
	Problem string `json:"problem,omitempty"`
}

// Certificate tells how long a member's certificate is good.
type Certificate struct {
	Expires time.Time `json:"expires"`
	LeftS   int64     `json:"left_s"` // by the member's clock; negative: it has expired
	// Authorities are those that the member trusts: the first 16 hexadecimal digits of the
	// SHA-256 of their certificates.
	Authorities []string `json:"authorities,omitempty"`
}

// Log is the extent of a member's log.
type Log struct {
	// Name is random, and tells a log from every other; "" while it has none.
	Name  string `json:"name"`
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	Bytes int64  `json:"bytes"`
}

// States of a database.
const (
	StateServing    = "serving"
	StateRebuilding = "rebuilding"
	StateDown       = "down"
	StateRefused    = "refused"   // it is another log's, or ahead of the log
	StateUnknown    = "unknown"   // nobody has heard of it
	StateCutLoose   = "cut_loose" // the log no longer waits for it
)

// Database is a cloud's database as a member has last heard of it.
type Database struct {
	Cloud   string `json:"cloud"`
	Kind    string `json:"kind"` // sqlite, postgres, mysql
	State   string `json:"state"`
	Applied uint64 `json:"applied"`
	// Lag is how many committed entries it lacks.
	Lag uint64 `json:"lag_entries"`
	// StalenessMS is how old at most what it holds is, -1 where that is not known.
	StalenessMS float64 `json:"staleness_ms"`
	// StuckAt is the entry that the database does not take, 0 for none; of the member's own cloud.
	StuckAt uint64 `json:"stuck_at,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// Problem is what an answer that is no 2xx holds.
type Problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Advice  string `json:"advice,omitempty"`
	// Failed is the check or write of a transaction that did not hold, from 0.
	Failed *int `json:"failed,omitempty"`
	// Version is set when a write was committed though less was reached than was asked for.
	Version uint64 `json:"version,omitempty"`
}

// Codes of problems, with their HTTP status.
const (
	CodeBadRequest   = "bad_request"   // 400
	CodeUnauthorized = "unauthorized"  // 401
	CodeForbidden    = "forbidden"     // 403
	CodeNotFound     = "not_found"     // 404: no such row
	CodeUnknownTable = "unknown_table" // 404
	CodeCheckFailed  = "check_failed"  // 409
	CodeBadField     = "bad_field"     // 409
	CodeTooLarge     = "too_large"     // 413
	CodeMisdirected  = "misdirected"   // 421: this member has no database
	CodeForeignHost  = "foreign_host"  // 421: nobody said that the member has that name
	CodeInternal     = "internal"      // 500
	CodeUnavailable  = "unavailable"   // 503: certainly not done
	CodeOverloaded   = "overloaded"    // 503, with Retry-After: certainly not done
	CodeDraining     = "draining"      // 503: the member is going down
	CodeInDoubt      = "in_doubt"      // 504: a write that may be done
	CodeNotReached   = "not_reached"   // 504: committed, but the acknowledgement asked for was not reached in time
)

// Freshness says what a read was answered from.
type Freshness struct {
	Cloud     string
	Applied   uint64
	Lag       uint64
	Staleness time.Duration // negative: not known
}

// Consistency is how fresh a read must be.
type Consistency struct {
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
	Get(ctx context.Context, table, key string, w Consistency) (Row, Freshness, error)
	Scan(ctx context.Context, table string, r Range, w Consistency) ([]Row, Freshness, error)
	Count(ctx context.Context, table string, w Consistency) (int64, Freshness, error)
	Tables(ctx context.Context, w Consistency) ([]string, Freshness, error)
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

// InlineReader is a Backend some of whose reads take microseconds and wait for nobody: the server
// does them in their turn, without a goroutine of their own.
type InlineReader interface {
	ReadsInline(w Consistency) bool
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
