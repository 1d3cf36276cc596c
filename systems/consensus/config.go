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
// write therefore wakes no other goroutines, which caused most of its latency on few processors. Tests run the same
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

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"skerry/systems/consensus/member"
	"skerry/systems/consensus/wal"
)

// MaxEntry is the most bytes of data that one entry holds.
const MaxEntry = 8 << 20

// Config is what Open needs. Only Cluster, Self, Members (of a new cluster) and Dir are required.
type Config struct {
	// Cluster identifies the cluster in handshakes and files. Members and directories of other clusters are refused.
	Cluster string
	// Self is this member. Its entry in the log (after membership changes) has precedence.
	Self Member
	// Members are all members of a new cluster, Self among them: the same list at each of them. Where the directory has a
	// log already, only addresses are taken from it: they replace those in the log until the log tells of a change.
	Members []Member
	// Join makes an empty directory wait until Add adds it to a running cluster. Members may then be empty.
	Join bool
	// Dir holds the log and snapshots on their way; it is made, and locked while open.
	Dir string

	// Listener is where other members connect to; nil: listen at Self.Addr. Open owns it.
	Listener net.Listener
	// TLS is for what other members connect to; it should have a certificate, ClientCAs and ClientAuth =
	// RequireAndVerifyClientCert. DialTLS is asked for that of each connection to another member, with a certificate and
	// RootCAs. nil, plain TCP, is for loopback and private networks only.
	TLS     *tls.Config
	DialTLS func() *tls.Config

	// Election is how long a member goes without its leader before it stands for election: between one and two times this
	// long, at random. Heartbeats are a tenth of it apart. 0: the leader sets it for all to
	//
	//	max(150 ms, 10 x (srtt + 4 x rttvar) of the slowest voter in reach)
	//
	// srtt and rttvar being the smoothed round trip and its deviation as in RFC 6298; at most 10 s, and 500 ms as long as
	// nothing is measured. A single round trip counts as no more than about twice what was expected: an outage is none.
	Election time.Duration
	// PreferSite is where the leader should stand when a voter there is up to date.
	PreferSite string
	// FollowProposals moves the leader to the site with two thirds of at least 50 proposals in 5 s. PreferSite has precedence.
	FollowProposals bool

	// Snapshotter gives and takes the consumer's state, for members that the log no longer serves. nil: a log without
	// state; such a member's log jumps ahead, and its consumer learns of it by a CompactedError.
	Snapshotter Snapshotter
	// MaxLog bounds the log on disk, in bytes; 0: 1 GiB; at least 1 MiB. Below it, entries stay until every member has
	// applied them. At the limit, members that lag are cut loose (a snapshot will bring them back); entries that no
	// member has applied are never dropped: proposals are refused with ErrLogFull instead, from fifteen sixteenths of
	// MaxLog on.
	MaxLog int64
	// MaxAge is how long entries wait for members that have not applied them; 0: for ever.
	MaxAge time.Duration

	// Log receives what operators should know; nil: nothing.
	Log *slog.Logger

	fs func(dir string) (wal.FS, error)
}

// Snapshotter moves the consumer's state between members. Its methods run concurrently with Entries and
// proposals; Load and Save never run at the same time in one node.
type Snapshotter interface {
	// Save writes the state as of one index, at least the last that was reported as Applied, and returns that index.
	Save(ctx context.Context, w io.Writer) (index uint64, err error)
	// Load replaces the state by one as of index, completely or, if r fails, not at all. Entries continue after index.
	Load(ctx context.Context, index uint64, r io.Reader) error
}

// Entry is one committed entry.
type Entry struct {
	Index uint64
	Term  uint64
	// Data is the proposed value. It is nil for the log's own entries (a leader's first, a change of membership): nothing
	// to apply, but their indices count. It must not be changed.
	Data []byte
}

type (
	Role         = member.Role
	Member       = member.Member
	Status       = member.NodeStatus
	MemberStatus = member.Status
)

const (
	Voter   = member.Voter
	Learner = member.Learner
	Witness = member.Witness
)

// MemberID derives an ID from a name: 63 bits of its SHA-256. A removed member cannot return under its name.
func MemberID(name string) uint64 {
	sum := sha256.Sum256([]byte(name))
	return max(1, binary.BigEndian.Uint64(sum[:8])>>1)
}

var (
	// ErrNotDone marks an error of a proposal that is not in the log and never will be. It may be proposed again elsewhere.
	ErrNotDone = errors.New("not done")
	// ErrInDoubt marks an error of a proposal that may or may not be committed. Only the log can answer.
	ErrInDoubt = errors.New("in doubt")

	ErrClosed  = errors.New("node is closed")
	ErrRemoved = errors.New("member was removed from the cluster")
	// ErrWitness reports that a witness has neither entries nor a state.
	ErrWitness = errors.New("a witness offers no entries")
	// ErrTooLarge reports an entry that exceeds MaxEntry.
	ErrTooLarge = errors.New("entry is too large")
	// ErrLogFull reports a log at its limit with entries that no consumer has applied, so that none may be dropped.
	ErrLogFull = errors.New("log is full of entries that no member has applied")
	// ErrStorage reports that the log cannot be written, for instance because the disk is full.
	ErrStorage = errors.New("log cannot be written")
	// ErrCluster reports a member or a data directory of another cluster.
	ErrCluster = errors.New("belongs to another cluster")
	// ErrLog reports another log of a cluster with the same name, or a state of such a log.
	ErrLog = errors.New("belongs to another log")
	// ErrNoSnapshotter reports that a state was requested from, or for, a member without Snapshotter.
	ErrNoSnapshotter = errors.New("member has no state to give")
	ErrNotMember     = errors.New("no such member")
)

// CompactedError reports that requested entries are no longer in the log. The consumer continues at First or later once
// it has a newer state: by Snapshotter.Load, which the node may have called in the meantime, or by Fetch.
type CompactedError struct {
	// First is the index of the first entry that the log still has.
	First uint64
}

func (e *CompactedError) Error() string {
	return fmt.Sprintf("entries before %d are no longer in the log", e.First)
}

func notDone(err error) error { return fmt.Errorf("%w: %w", ErrNotDone, err) }

func inDoubt(err error) error { return fmt.Errorf("%w: %w", ErrInDoubt, err) }
