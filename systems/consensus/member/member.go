// Package member describes members of a replicated log, and the status of a node, as plain data. Clients import it
// without the code of consensus.
package member

import (
	"fmt"
	"time"
)

// Role is what a member does for the cluster.
type Role string

const (
	// Voter keeps the log, counts towards majorities and offers Entries to its consumer.
	Voter Role = "voter"
	// Learner receives the log and offers Entries but does not count towards majorities.
	Learner Role = "learner"
	// Witness keeps the log and counts towards majorities but has no consumer: its Entries returns ErrWitness. Two places
	// alone cannot lose either and go on, since neither can tell whether the other is gone or only out of reach; a
	// witness in a third place breaks the tie without a database there. It costs a disk write per batch and the bandwidth
	// of the log. It cannot give state to others, so that it passes leadership on as soon as another voter is up to date;
	// and an entry that only a witness and one consumer's member hold is applied nowhere else until that member is back
	// or the witness has passed it on.
	Witness Role = "witness"
)

// Member is one process of the cluster.
type Member struct {
	ID   uint64 `json:"id"`
	Name string `json:"name"`
	// Addr is where other members reach it: host:port.
	Addr string `json:"addr"`
	// Site is the cloud or datacentre that it stands in; may be empty.
	Site string `json:"site,omitempty"`
	Role Role   `json:"role"`
}

func (m Member) String() string {
	return fmt.Sprintf("%s (%d, %s at %s)", m.Name, m.ID, m.Role, m.Addr)
}

// NodeStatus is the status of a node.
type NodeStatus struct {
	Cluster string `json:"cluster"`
	Self    Member `json:"self"`
	// State is leader, follower, candidate or pre-candidate.
	State string `json:"state"`
	// Leader is 0 when none is known.
	Leader uint64 `json:"leader"`
	Term   uint64 `json:"term"`
	// Commit is the last index known as committed.
	Commit uint64 `json:"commit"`
	// Applied is what this member's consumer reported.
	Applied uint64 `json:"applied"`
	// First and Last bound the entries in the log on disk; First > Last: none.
	First    uint64        `json:"first"`
	Last     uint64        `json:"last"`
	LogBytes int64         `json:"log_bytes"`
	Election time.Duration `json:"election"`
	// StorageError is the reason why the log cannot be written; empty if it can be written.
	StorageError string   `json:"storage_error,omitempty"`
	Removed      bool     `json:"removed,omitempty"`
	Members      []Status `json:"members"`
	// Syncs and Synced count fsyncs of the log and the entries they made durable.
	Syncs  uint64 `json:"syncs"`
	Synced uint64 `json:"synced"`
}

// Status is the status of a member, or of the node itself, as the node sees it.
type Status struct {
	Member
	// Votes reports whether it currently counts towards majorities: a new voter is a learner until it has caught up.
	Votes bool `json:"votes"`
	// Connected reports whether messages reach it.
	Connected bool `json:"connected"`
	// RTT is the smoothed round trip; 0: not measured.
	RTT time.Duration `json:"rtt"`
	// Applied is what its consumer reported last.
	Applied uint64 `json:"applied"`
	// Match is the last index on the member's disk, Progress how the leader replicates to it. Only the leader knows them.
	Match    uint64 `json:"match,omitempty"`
	Progress string `json:"progress,omitempty"`
	// Error is why it cannot be reached, or why it refused the connection.
	Error string `json:"error,omitempty"`
}
