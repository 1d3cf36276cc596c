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
// # What runs
//
// A Node has one goroutine (writeLog) that writes the log, one (loop) that has the machine's
// time pass, and for each other member one that writes to it and one that reads from it. The
// machine is a state machine without goroutines, clocks or I/O except for reading the
// log; what it wants done it returns. One goroutine at a time drives it: whoever brings
// something, a proposal or a message, and it sends what follows from that, too, as far as sockets
// take it at once. A write so passes through a member without waking goroutines that have
// nothing else to do, of which, on few processors, most of its latency consisted. The tests drive the same machine, the same store and
// the same log on a directory in memory, with messages lost, late, doubled and out of
// order, partitions, pauses, full disks, changes of membership, and crashes that lose any
// part of what was not synced; a seed decides everything (SKERRY_SEED, SKERRY_SCHEDULES).
//
// # Proposals
//
// A proposal is in the log at most once, though it is tried again through any number of
// leaders: each try belongs to one term, only that term's leader may append it, in that
// term, and it is tried again only when that leader refused it or when the log shows an
// entry of a later term before it. Propose's errors tell what is certain (ErrNotDone)
// from what is not (ErrInDoubt: its context ended while a leader had it, or the log
// jumped over the place where it would be).
//
// An entry counts as committed here once it is on this member's disk too, so that Entries
// never has to take it back. The leader sends entries to the others while it writes them
// itself: a proposal takes the longer of one fsync and a round trip with an fsync at the
// nearest majority. Proposals that come while its disk writes make the next batch: they share
// messages, writes and fsyncs, which under load is two thirds of their cost, and wait for no
// more than that fsync. A write that comes alone costs each member one fsync, and each follower
// three messages: commits are written along with what comes next, and acknowledged no second time.
//
// # Elections
//
// A leader's process that ends is suspected as soon as its machine refuses connections,
// and members stand one after the other: those of the preferred site first, witnesses
// last. A leader whose machine vanishes without a word is missed after an election timeout. A
// new leader leads for a while before it passes its leadership on to the preferred site,
// only to a member that answers, and takes an attempt back that comes to nothing: raft
// holds proposals back meanwhile.
//
// # The log's length
//
// What all members' consumers have applied is dropped, in segments of a sixteenth of
// MaxLog. Close to MaxLog (or beyond MaxAge) what any consumer has applied is dropped too: members
// that were left behind get a snapshot, which is an index from raft's leader and a state at
// that index or later from whoever has one, pulled by the member that needs it and loaded
// before its log jumps. A member that was added gets one as well unless the log is whole.
//
// # A member that lost its disk
//
// It must not come back under its old identifier: it has acknowledged entries that it no
// longer has, and voted in elections that it no longer knows. Remove it and add it again
// under a new one, with Join and an empty directory. Where the cluster can tell, the node
// stops with an error that says so.
package consensus
