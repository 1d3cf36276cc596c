// Package journal is a log on disk that many append to at once: records become durable
// in groups, with one fsync for all that wait, and are applied in the log's order.
package journal

import "context"

// Log orders records and makes them durable. A consensus group can stand in place of
// this package's Journal.
//
// A record is applied, by the Apply function that the log was opened with, once and in the
// log's order, after it is durable (on a majority, where there are replicas); what Apply
// returns is what Append returns. Apply is called from one goroutine at a time.
type Log interface {
	// Append returns once record is durable and was applied. An error means that it was
	// not, or, with ErrUnknown, that this is not known.
	Append(ctx context.Context, record []byte) (any, error)
	// Close waits until all that was appended is durable.
	Close() error
}

// Apply changes the state as a record says; index counts records from 1.
type Apply func(index uint64, record []byte) any
