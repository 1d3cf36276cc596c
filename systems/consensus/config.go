package consensus

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"skerry/systems/consensus/member"
	"time"

	"skerry/systems/consensus/wal"
)

// MaxEntry is the most bytes of data that one entry holds.
const MaxEntry = 8 << 20

// Config is what Open needs. Only Cluster, Self, Members (of a new cluster) and Dir are required.
type Config struct {
	// Cluster identifies the cluster in handshakes and files. Members and directories of other clusters are refused.
	Cluster string
	// Self is this member. What the log knows of it (after changes of membership) has precedence.
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
	// Dial replaces the way to other members, for tests; nil: TCP, under TLS if set.
	Dial func(ctx context.Context, addr string) (net.Conn, error)

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
	// SnapshotRate bounds what snapshots take of the network, in bytes per second and per receiver; 0: 64 MiB/s.
	SnapshotRate int64
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

// Snapshotter moves the consumer's state between members. Its methods run beside Entries and
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
	// Data is what was proposed. It is nil for the log's own entries (a leader's first, a change of membership): nothing
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
