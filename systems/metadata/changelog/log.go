// Package changelog is a log of changes on disk with group commit, on the log of package wal: one fsync makes all waiting
// records durable, and they are applied in log order.
//
//	DIR/version            version of the layout
//	DIR/LOCK               locked by the process that has the journal open
//	DIR/*.wal              the log: record i is entry i, all of term 1
//	DIR/snapshot-INDEX     the state after record INDEX; segments with older records only are deleted
//
// Invariants:
//
//   - What is acknowledged is durable. One goroutine writes a group, syncs it, applies its records, and only then answers.
//   - What is refused is never applied. wal.Log undoes a failed write durably. If it cannot, the answer is ErrUnknown, and the
//     journal is read-only: after a failed fsync, the content of the disk is unknown.
//   - Replay applies the records that were applied before, in the same order and with the same indexes, then perhaps records
//     whose callers got no answer or ErrUnknown. A group is written only after the fsync of the previous one, so a crash can
//     tear only the last group. None of its records was answered. wal.Open cuts off the torn part, and refuses a log in which
//     a bad record was durable, since each record carries the number of bytes that were durable before it.
//   - A snapshot never hides a lost record; see recover.
package changelog

import (
	"context"
	"io"
)

// Log orders records and makes them durable. Journal and replica.Log implement it.
//
// A record is durable (with replicas: on a majority) before it is applied. The Machine applies each record once, in log
// order. Append returns the result of Apply.
type Log interface {
	// Append returns after record is durable and applied. An error means that record will never be applied, or, for
	// ErrUnknown, that this is unknown. The caller must not modify record afterwards.
	Append(ctx context.Context, record []byte) (any, error)
	// Close waits until all appended records are applied.
	Close() error
}

// SharedLog is a Log to which other machines append as well. The local state may lag behind answers that they gave.
type SharedLog interface {
	Log
	// Current returns after everything that any replica acknowledged before the call is applied here.
	Current(ctx context.Context) error
}

// Machine is the state that records change. Calls do not overlap.
type Machine interface {
	Restore(r io.Reader) error
	// Apply applies a record; the first index is 1.
	Apply(index uint64, record []byte) any
	// Snapshot captures the state between two calls of Apply.
	Snapshot() (Snapshot, error)
}

// Snapshot is a captured state. Write runs while records are applied.
type Snapshot interface {
	Write(w io.Writer) error
	Close()
}
