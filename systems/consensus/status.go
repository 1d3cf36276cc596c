package consensus

import "time"

// Status is a node as it stands.
type Status struct {
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
	First    uint64 `json:"first"`
	Last     uint64 `json:"last"`
	LogBytes int64  `json:"log_bytes"`
	// Election is the election timeout in use.
	Election time.Duration `json:"election"`
	// StorageError tells why the log cannot be written; empty while it can.
	StorageError string         `json:"storage_error,omitempty"`
	Removed      bool           `json:"removed,omitempty"`
	Members      []MemberStatus `json:"members"`
	// Syncs and Synced count fsyncs of the log and the entries they made durable.
	Syncs  uint64 `json:"syncs"`
	Synced uint64 `json:"synced"`
}

// MemberStatus is another member, or the node itself, as the node sees it.
type MemberStatus struct {
	Member
	// Votes tells whether it counts towards majorities at the moment: a new voter is a
	// learner until it has caught up.
	Votes bool `json:"votes"`
	// Connected tells whether messages reach it.
	Connected bool `json:"connected"`
	// RTT is the smoothed round trip; 0: not measured.
	RTT time.Duration `json:"rtt"`
	// Applied is what its consumer reported last.
	Applied uint64 `json:"applied"`
	// Match is the last index known to be on its disk, and Progress how the leader
	// replicates to it (probe, replicate, snapshot); only the leader knows.
	Match    uint64 `json:"match,omitempty"`
	Progress string `json:"progress,omitempty"`
	// Error is why it cannot be reached, or why it refused the connection.
	Error string `json:"error,omitempty"`
}
