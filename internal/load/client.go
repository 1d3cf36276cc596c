// Package load drives a database with a workload: closed or open loop, with an
// outcome and two latencies for every operation, and never stopped by an error.
package load

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"skerry/internal/load/mdtest"
	"skerry/internal/load/ycsb"
)

// Field is one named value of a record. Values that a client returns are valid until
// the next call on it; values that it is given are valid until its method returns.
type Field = ycsb.Field

// Client is one worker's connection to a database. A worker calls it from one
// goroutine, one operation at a time. The context's deadline bounds the operation; it
// holds for that operation alone and must not be kept.
//
// An error is ErrNotFound, or carries an Outcome through Failed or Unknown;
// any other error counts as unknown, since nobody can say whether a write happened.
type Client interface {
	// Read appends the named fields (all when none is named) of key to dst.
	Read(ctx context.Context, table, key string, fields []string, dst []Field) ([]Field, error)
	// Scan visits up to count records from start on, in the order of keys where the
	// database has one, and returns how many it saw. visit may be nil.
	Scan(ctx context.Context, table, start string, count int, fields []string, visit func(key string, fields []Field)) (int, error)
	Update(ctx context.Context, table, key string, values []Field) error
	Insert(ctx context.Context, table, key string, values []Field) error
	Delete(ctx context.Context, table, key string) error
	Close() error
}

// Retrier is a client that tries operations again by itself. Retries is how often it
// did so since it was opened; it is called at any time, from another goroutine.
type Retrier interface{ Retries() int64 }

// Counter is a client that can count the records of a table. A load is verified by it
// before it is believed; without it, by reading every record back.
type Counter interface {
	Count(ctx context.Context, table string) (int64, error)
}

// Outcome is what became of an operation.
type Outcome uint8

// Outcomes.
const (
	OK      Outcome = iota
	NotDone         // the database said no: it certainly did not happen
	InDoubt         // sent, no answer: it may have happened
	Dropped         // never sent: the bound on operations in flight was reached
)

// String is the outcome's name in results.
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

// ErrNotFound says that a record does not exist.
var ErrNotFound = errors.New("no such record")

// ErrNotHeld says that a member that was asked alone holds other records, by design.
var ErrNotHeld = errors.New("the member does not hold this record")

// ErrUnsupported says that a database cannot do an operation at all.
var ErrUnsupported = errors.New("operation not supported")

// OpError is an operation's failure with its class ("timeout", "refused",
// "clusterdown") and, where known, the node that it concerns.
type OpError struct {
	Outcome Outcome
	Class   string
	Node    string
	Err     error
}

func (e *OpError) Error() string { return fmt.Sprintf("%s: %v", e.Class, e.Err) }

func (e *OpError) Unwrap() error { return e.Err }

// Classes of errors that the driver itself tells apart. Clients add their own.
const (
	classNotFound    = "not_found"
	classUnsupported = "unsupported"
	classTimeout     = "timeout"
	classCanceled    = "canceled"
	classStuck       = "stuck"
	classOther       = "error"
)

// Failed is an operation that certainly did not happen.
func Failed(class, node string, err error) error { return &OpError{NotDone, class, node, err} }

// Unknown is an operation that may have happened.
func Unknown(class, node string, err error) error { return &OpError{InDoubt, class, node, err} }

// classify turns a client's error into an outcome; nil stays nil.
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

// returnCode is YCSB's status name for a class.
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

// BulkClient is a client that inserts many records in one request. The load phase uses it as far
// as Spec.Batch lets it.
type BulkClient interface {
	// InsertAll inserts records, each as Insert does. Their keys are different. After an
	// error any of them may be there. The context's deadline is that of all together.
	InsertAll(ctx context.Context, table string, records []Record) error
}

// Record is a key with its fields.
type Record struct {
	Key    string
	Values []Field
}

// TreeClient is a client of a directory tree, for the workloads of package mdtest.
type TreeClient interface {
	Client
	// Areas is how many areas the tree has, at least 1.
	Areas() int
	// Tree does one operation. Creating what is there is no error where the operation
	// makes Parents.
	Tree(ctx context.Context, op *mdtest.Op) error
}
