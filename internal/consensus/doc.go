// Package consensus is a replicated log: Raft over a write-ahead log on disk and TCP
// between its members.
//
// A member proposes entries (Propose) and reads the committed ones in their order
// (Entries) at its own pace; what an entry means is its consumer's business. The consumer
// keeps the index it has applied together with its own state, tells the log about it
// (Applied), and asks for the next entries after it: a log so used is applied exactly once.
//
//	Propose ─► machine ─► raft ─┬─► store: one write and one fsync for all that wait ─┐
//	              ▲             └─► transport ─► other members                        │
//	              └───────────── acknowledgements ◄───────────────────────────────────┘
//	committed ─► wal.Log ─► Entries ─► the consumer ─► Applied ─► compaction
//
// The machine is a state machine without goroutines, clocks or I/O; Node drives it with
// real ones, and the tests with a simulation of messages lost, late and out of order, of
// partitions and of crashes that lose what was not synced.
package consensus
