// Package consensus is a replicated log: Raft over a write-ahead log on disk and TCP between members.
//
// A member proposes entries (Propose) and reads committed entries in log order (Entries) at its own pace. The consumer
// gives entries their meaning. It stores the index that it has applied together with its own state, reports it
// (Applied), and asks for the entries after it. A log that is used this way is applied exactly once.
//
//	Propose ─► machine ─► raft ─┬─► store: one write and one fsync for all waiting requests ─┐
//	              ▲             └─► transport ─► other members                               │
//	              └───────────── acknowledgements ◄──────────────────────────────────────────┘
//	committed ─► wal.Log ─► Entries ─► the consumer ─► Applied ─► compaction
//
// # Goroutines
//
// A Node has a goroutine that writes the log (writeLog), one that advances the machine's time (loop), and for each
// other member one that writes to it and one that reads from it. The machine has no goroutines, no clock and no I/O
// except for reading the log. It returns the actions that its driver carries out. One goroutine at a time drives it:
// the one that brings a proposal or a message, which also sends the results as far as sockets accept them at once. A
// write thus wakes no other goroutines, which caused most of its latency on few processors. Tests run the same
// machine, store and log on a directory in memory, with lost, late, duplicated and reordered messages, partitions,
// pauses, full disks, changes of membership, and crashes that lose any part of what was not synced. A seed determines
// every schedule (SKERRY_SEED, SKERRY_SCHEDULES).
//
// # Proposals
//
// Invariant: a proposal is in the log at most once, although any number of leaders may receive it. Each attempt belongs
// to one term, and only the leader of that term may append it, in that term. The next attempt begins only after that
// leader refused the proposal, or after an entry of a later term was committed with the proposal not before it. The
// errors of Propose distinguish certainty (ErrNotDone) from doubt (ErrInDoubt: the context ended while a leader had
// the proposal, or the log skipped the position where it would be).
//
// A member counts an entry as committed once the entry is on its own disk too, so that Entries never retracts one. The
// leader sends entries to the others while it writes them itself: a proposal takes the longer of one fsync, and a
// round trip with an fsync at the nearest majority. Proposals that arrive during a write form the next batch. They
// share messages, writes and fsyncs, which are two thirds of their cost under load, and wait for one fsync at most. A
// single write costs each member one fsync, and each follower three messages, because commits are written together
// with what follows and are not acknowledged again.
//
// # Elections
//
// Members suspect a leader as soon as its machine refuses connections, and stand one after another: members of the
// preferred site first, witnesses last. A leader whose machine vanishes is missed after an election timeout. A new
// leader leads for a while before it transfers the leadership to the preferred site. It does so only to a member that
// answers, and aborts a transfer that does not complete, since raft holds proposals back meanwhile.
//
// # Length of the log
//
// Entries that the consumers of all members have applied are dropped, in segments of a sixteenth of MaxLog. Close to
// MaxLog, or beyond MaxAge, entries that any consumer has applied are dropped too. Members that lag receive a snapshot:
// an index from the leader, and a state at that index or later from any member that has one. The member that needs the
// state fetches and loads it before its log skips. An added member receives a snapshot too unless the log is complete.
//
// # A member that lost its disk
//
// It must not return under its old identifier: it has acknowledged entries that it no longer has, and it does not know
// its votes. Remove it, and add it again under a new identifier, with Join and an empty directory. Where the cluster
// detects this case, the node stops with an error.
package consensus
