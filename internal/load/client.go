// Package load drives a database with a workload: closed or open loop, with an
// outcome and two latencies for every operation, and never stopped by an error.
package load

import (
	"context"
	"errors"
	"fmt"

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
