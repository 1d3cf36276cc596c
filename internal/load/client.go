// Package load drives a database with a workload, in a closed or open loop. It records an outcome
// and two latencies for every operation. Errors never stop it.
package load

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"skerry/internal/load/mdtest"
	"skerry/internal/load/ycsb"
)

// Field is a named value of a record. Values that a client returns are valid until the next call on
// it. Values passed to a client are valid until its method returns.
type Field = ycsb.Field

// Client is one worker's connection to a database. A worker calls it from one goroutine, one
// operation at a time. The context's deadline bounds the operation; a client must not keep the
// context.
//
// An error is ErrNotFound or has an Outcome from Failed or Unknown. Any other error counts as
// unknown, since a write may have happened.
type Client interface {
	// Read appends the named fields of key to dst, or all fields if none is named.
	Read(ctx context.Context, table, key string, fields []string, dst []Field) ([]Field, error)
	// Scan visits up to count records from start, in key order if the database has one, and returns
	// the number of visited records. visit may be nil.
	Scan(ctx context.Context, table, start string, count int, fields []string, visit func(key string, fields []Field)) (int, error)
	Update(ctx context.Context, table, key string, values []Field) error
	Insert(ctx context.Context, table, key string, values []Field) error
	Delete(ctx context.Context, table, key string) error
	Close() error
}

// Retrier is a client that retries operations internally. Retries counts the retries since the
// client was opened. It is safe for concurrent use.
type Retrier interface{ Retries() int64 }

// Counter is a client that can count the records of a table, to verify a load. Without it, every
// record is read back.
type Counter interface {
	Count(ctx context.Context, table string) (int64, error)
}

// Dropper is a client that can remove a table with all its records. No table is no error.
type Dropper interface {
	DropTable(ctx context.Context, table string) error
}

// Outcome is the outcome of an operation.
type Outcome uint8

const (
	OK      Outcome = iota
	NotDone         // the database rejected it: it certainly did not happen
	InDoubt         // sent without an answer: it may have happened
	Dropped         // never sent: the limit of operations in flight was reached
)

// String returns the outcome's name in results.
func (o Outcome) String() string {
	switch o {
	case OK:
		return "ok"
	case NotDone:
		return "failed"
	case InDoubt:
		return "unknown"
	}
	return "dropped"
}

var ErrNotFound = errors.New("no such record")

// ErrNotHeld means that a single queried member does not store the record by design.
var ErrNotHeld = errors.New("the member does not hold this record")

var ErrUnsupported = errors.New("operation not supported")

// OpError is the failure of an operation, with its class ("timeout", "refused", "clusterdown") and
// its node, if known.
type OpError struct {
	Outcome Outcome
	Class   string
	Node    string
	Err     error
}

func (e *OpError) Error() string { return fmt.Sprintf("%s: %v", e.Class, e.Err) }

func (e *OpError) Unwrap() error { return e.Err }

// Error classes of the driver. Clients add their own.
const (
	classNotFound    = "not_found"
	classUnsupported = "unsupported"
	classTimeout     = "timeout"
	classCanceled    = "canceled"
	classStuck       = "stuck"
	classOther       = "error"
)

// Failed marks an operation that certainly did not happen.
func Failed(class, node string, err error) error { return &OpError{NotDone, class, node, err} }

// Unknown marks an operation that may have happened.
func Unknown(class, node string, err error) error { return &OpError{InDoubt, class, node, err} }

func classify(err error) *OpError {
	if err == nil {
		return nil
	}
	var e *OpError
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, ErrNotFound):
		return &OpError{NotDone, classNotFound, "", err}
	case errors.Is(err, ErrUnsupported):
		return &OpError{NotDone, classUnsupported, "", err}
	case errors.Is(err, context.DeadlineExceeded):
		return &OpError{InDoubt, classTimeout, "", err}
	case errors.Is(err, context.Canceled):
		return &OpError{InDoubt, classCanceled, "", err}
	}
	return &OpError{InDoubt, classOther, "", err}
}

const returnOK = "OK"

func returnCode(class string) string {
	switch class {
	case classUnsupported:
		return "NOT_IMPLEMENTED"
	case "":
		return "ERROR"
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, class)
}

// BulkClient is a client that inserts many records in one request. The load phase uses it within
// Spec.Batch.
type BulkClient interface {
	// InsertAll inserts records with distinct keys. The context's deadline bounds the whole
	// request. After an error any of the records may exist.
	InsertAll(ctx context.Context, table string, records []Record) error
}

type Record struct {
	Key    string
	Values []Field
}

// TreeClient is a client of a directory tree, for the workloads of package mdtest.
type TreeClient interface {
	Client
	// Areas is the number of areas of the tree, at least 1.
	Areas() int
	// Tree executes one operation. If the operation has Parents set, it must accept an existing
	// entry.
	Tree(ctx context.Context, op *mdtest.Op) error
}
