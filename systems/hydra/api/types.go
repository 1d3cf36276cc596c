// Package api is Hydra's HTTP/JSON interface: its types, its server, and its OpenAPI document.
// The server calls a Backend: a member of the data layer, or a plain SQL database.
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
//	GET    /v1/stream                          rows and transactions as frames: package framing
//	GET    /status /healthz /readyz /metrics /openapi.yaml
//
// Reads take ?read=linearizable (default), local or bounded with ?max_staleness_ms=N; writes take ?ack=committed
// (default), applied or everywhere, and an Idempotency-Key header.
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

type (
	Transaction = command.Transaction
	Check       = command.Check
	Write       = command.Write
)

// Read is the consistency level of a read.
type Read string

const (
	// Linearizable reads see every write acknowledged before their start.
	Linearizable Read = "linearizable"
	// Local reads return the state of the cloud's database; headers report its age.
	Local Read = "local"
	// Bounded reads are local if the database is fresh enough, else linearizable.
	Bounded Read = "bounded"
)

// Reads and Acks are in the order of their codes in streams, which must never change.
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

const (
	HeaderRequestID = "Idempotency-Key"
	HeaderMember    = "Hydra-Member"       // answering member
	HeaderCloud     = "Hydra-Cloud"        // cloud of the answering database
	HeaderApplied   = "Hydra-Applied"      // applied index of the database
	HeaderLag       = "Hydra-Lag-Entries"  // committed entries not applied
	HeaderStaleness = "Hydra-Staleness-Ms" // maximum age of the rows
	HeaderVersion   = "Hydra-Version"      // of the row, or of the write
	HeaderForwarded = "Hydra-Forwarded"    // member that forwarded the request
)

type Row struct {
	Key string `json:"key"`
	// Version is the log index of the transaction that wrote the row.
	Version uint64          `json:"version"`
	Value   json.RawMessage `json:"value"`
}

type Rows struct {
	Rows []Row `json:"rows"`
	// Next is the "after" of the next page; "" on the last page.
	Next string `json:"next,omitempty"`
}

type Written struct {
	Version uint64 `json:"version"`
	Ack     Ack    `json:"ack"` // level reached
}

type Count struct {
	Rows int64 `json:"rows"`
}

type Tables struct {
	Tables []string `json:"tables"`
}

// Member is a member of the cluster.
type Member struct {
	ID    uint64 `json:"id"`
	Name  string `json:"name"`
	Cloud string `json:"cloud"`
	// Peer is the address for other members, API the address for clients (host:port).
	Peer    string `json:"peer"`
	API     string `json:"api,omitempty"`
	Witness bool   `json:"witness,omitempty"`
	Learner bool   `json:"learner,omitempty"`
}

type Members struct {
	Members []Member `json:"members"`
}

type LeaderChange struct {
	To string `json:"to"` // a member's name
}

// Status is a member's view of the cluster.
type Status struct {
	Cluster string `json:"cluster"`
	Member  string `json:"member"`
	Cloud   string `json:"cloud"`
	Witness bool   `json:"witness,omitempty"`
	// Role is leader, follower, candidate or learner; direct without a log.
	Role    string `json:"role"`
	Leader  string `json:"leader,omitempty"` // a member's name
	Term    uint64 `json:"term"`
	Commit  uint64 `json:"commit"`
	Applied uint64 `json:"applied"`
	// ElectionMS is the election timeout; 0 without a log.
	ElectionMS  float64      `json:"election_timeout_ms,omitempty"`
	Draining    bool         `json:"draining,omitempty"`
	Log         Log          `json:"log"`
	Databases   []Database   `json:"databases"`
	Members     []Member     `json:"members"`
	Version     string       `json:"version"`
	Certificate *Certificate `json:"certificate,omitempty"`
	// Problem is why this member's cloud does not serve; "" if it does.
	Problem string `json:"problem,omitempty"`
}

// Certificate describes a member's certificate.
type Certificate struct {
	Expires time.Time `json:"expires"`
	LeftS   int64     `json:"left_s"` // by the member's clock; negative after expiry
	// Authorities are the trusted authorities: the first 16 hexadecimal digits of the SHA-256 of their certificates.
	Authorities []string `json:"authorities,omitempty"`
}

type Log struct {
	// Name is random and unique; "" before the log has a name.
	Name  string `json:"name"`
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	Bytes int64  `json:"bytes"`
}

const (
	StateServing    = "serving"
	StateRebuilding = "rebuilding"
	StateDown       = "down"
	StateRefused    = "refused"   // belongs to another log, or is ahead of the log
	StateUnknown    = "unknown"   // no report yet
	StateCutLoose   = "cut_loose" // the log no longer waits for it
)

// Database is a cloud's database as a member last saw it.
type Database struct {
	Cloud   string `json:"cloud"`
	Kind    string `json:"kind"` // sqlite, postgres, mysql
	State   string `json:"state"`
	Applied uint64 `json:"applied"`
	// Lag is the number of committed entries not applied.
	Lag uint64 `json:"lag_entries"`
	// StalenessMS is the maximum age of the state, -1 if unknown.
	StalenessMS float64 `json:"staleness_ms"`
	// StuckAt is the entry that the member's own database rejects, 0 for none.
	StuckAt uint64 `json:"stuck_at,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// Problem is the body of an error answer.
type Problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Advice  string `json:"advice,omitempty"`
	// Failed is the position of the failed check or write of a transaction.
	Failed *int `json:"failed,omitempty"`
	// Version is set if a write was committed without reaching the requested acknowledgement.
	Version uint64 `json:"version,omitempty"`
}

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
	CodeForeignHost  = "foreign_host"  // 421: unknown host name
	CodeInternal     = "internal"      // 500
	CodeUnavailable  = "unavailable"   // 503: not executed
	CodeOverloaded   = "overloaded"    // 503, with Retry-After: not executed
	CodeDraining     = "draining"      // 503: the member is going down
	CodeInDoubt      = "in_doubt"      // 504: the write may have been executed
	CodeNotReached   = "not_reached"   // 504: committed, requested acknowledgement not reached in time
)

// Freshness describes the state that a read returned.
type Freshness struct {
	Cloud     string
	Applied   uint64
	Lag       uint64
	Staleness time.Duration // negative: unknown
}

// Consistency is the required freshness of a read.
type Consistency struct {
	Read      Read
	Staleness time.Duration // of bounded reads
}

// Range selects the rows of a scan, ordered by the bytes of keys.
type Range struct {
	From   string // first key
	Until  string // end, excluded; "" for no end
	Behind bool   // exclude the key From
	Limit  int
}

// Backend executes requests. Errors are *Problem, *Elsewhere, or internal errors.
type Backend interface {
	Get(ctx context.Context, table, key string, w Consistency) (Row, Freshness, error)
	Scan(ctx context.Context, table string, r Range, w Consistency) ([]Row, Freshness, error)
	Count(ctx context.Context, table string, w Consistency) (int64, Freshness, error)
	Tables(ctx context.Context, w Consistency) ([]string, Freshness, error)
	Write(ctx context.Context, t *Transaction, a Ack) (Written, error)

	Status(ctx context.Context) Status
	// Ready returns nil when the member serves reads and writes.
	Ready(ctx context.Context) error
	AddMember(ctx context.Context, m Member) (Member, error)
	RemoveMember(ctx context.Context, id uint64) error
	Transfer(ctx context.Context, to string) error
	// Snapshot writes a snapshot for cloudsql.ReadSnapshot.
	Snapshot(ctx context.Context, w io.Writer) error
	// Progress waits until the database has applied index or ctx ends, and returns the applied index.
	Progress(ctx context.Context, index uint64) uint64
}

// InlineReader is a Backend some of whose reads take microseconds. They run without a goroutine of their own.
type InlineReader interface {
	ReadsInline(w Consistency) bool
}

// Elsewhere names a member that can answer while this database is unavailable. The server forwards the request once.
type Elsewhere struct {
	Member, API string
	Why         error
}

func (e *Elsewhere) Error() string {
	return fmt.Sprintf("%v; %s at %s can answer", e.Why, e.Member, e.API)
}

func (e *Elsewhere) Unwrap() error { return e.Why }

func (p *Problem) Error() string { return p.Message }

func Problemf(code, format string, args ...any) *Problem {
	return &Problem{Code: code, Message: fmt.Sprintf(format, args...)}
}

var statuses = map[string]int{
	CodeBadRequest: http.StatusBadRequest, CodeUnauthorized: http.StatusUnauthorized, CodeForbidden: http.StatusForbidden,
	CodeNotFound: http.StatusNotFound, CodeUnknownTable: http.StatusNotFound,
	CodeCheckFailed: http.StatusConflict, CodeBadField: http.StatusConflict, CodeTooLarge: http.StatusRequestEntityTooLarge,
	CodeMisdirected: http.StatusMisdirectedRequest, CodeForeignHost: http.StatusMisdirectedRequest,
	CodeInternal:    http.StatusInternalServerError,
	CodeUnavailable: http.StatusServiceUnavailable, CodeOverloaded: http.StatusServiceUnavailable, CodeDraining: http.StatusServiceUnavailable,
	CodeInDoubt: http.StatusGatewayTimeout, CodeNotReached: http.StatusGatewayTimeout,
}
