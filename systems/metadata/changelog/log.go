// Package changelog is a log on disk that many append to at once: records become durable
// in groups, with one fsync for all that wait, and are applied in the log's order.
//
//	DIR/version            of the layout
//	DIR/lock               held by the process that has the journal open
//	DIR/log-INDEX          a segment: groups of records, the first of which is INDEX
//	DIR/snapshot-INDEX     the state after record INDEX; segments before it are deleted
//
// A group is what one fsync made durable, and has one checksum. A crash can tear the last
// group alone: groups are written one after the other's fsync. Open drops a torn last
// group, none of whose records was acknowledged, and refuses a journal where something
// good stands behind something broken.
package changelog

import (
	"context"
	"io"
)

// Log orders records and makes them durable. A consensus group can stand in place of
// this package's Journal.
//
// A record is applied, by the Machine that the log was opened with, once and in the log's
// order, after it is durable (on a majority, where there are replicas); what Apply returns
// is what Append returns.
type Log interface {
	// Append returns once record is durable and was applied. An error means that it never
	// will be, or, with ErrUnknown, that this is not known. The record must not change
	// afterwards.
	Append(ctx context.Context, record []byte) (any, error)
	// Close waits until what was appended was applied.
	Close() error
}

// SharedLog is a Log that others append to as well, on other machines: what is applied here
// may lag behind what they were answered.
type SharedLog interface {
	Log
	// Current returns once all that was answered before the call, to anybody, is applied
	// here.
	Current(ctx context.Context) error
}

// Machine is the state that the records change. Its methods are called by one goroutine
// at a time.
type Machine interface {
	// Restore replaces the state by that of a snapshot.
	Restore(r io.Reader) error
	// Apply changes the state as a record says; index counts records from 1.
	Apply(index uint64, record []byte) any
	// Snapshot takes the state as it is between two calls of Apply.
	Snapshot() (Snapshot, error)
}

// Snapshot is a state at one moment; it is written while records are applied.
type Snapshot interface {
	Write(w io.Writer) error
	Close()
}
