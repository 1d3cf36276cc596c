package protocol

import (
	"time"

	"skerry/systems/consensus/member"
	"skerry/systems/metadata"
	"skerry/systems/metadata/rebalance"
	"skerry/systems/metadata/tree"
)

// Status is the answer to GET /v1/status.
type Status struct {
	Tree     tree.Counts       `json:"tree"`
	Journal  JournalStatus     `json:"journal"`
	Recovery Recovery          `json:"recovery"`
	Subtrees map[string]string `json:"subtrees"` // owners of virtual directories
	Uptime   float64           `json:"uptime_s"`
	// Transactions are the unfinished transactions with other servers.
	Transactions []metadata.Txn `json:"transactions,omitempty"`
	// Group is the state of the server's replicas; nil without replicas.
	Group *member.NodeStatus `json:"group,omitempty"`
	// Name is the server's name, Servers has the addresses of all servers that share the tree, and Root is the server of
	// "/". They are empty for a server that shares no tree.
	Name    string            `json:"name,omitempty"`
	Servers map[string]string `json:"servers,omitempty"`
	Root    string            `json:"root,omitempty"`
	// Asked counts the requests that this process forwarded to each other server.
	Asked map[string]uint64 `json:"asked,omitempty"`
	// Load is the load of this process. In a group it covers only the requests that this replica answers.
	Load     *rebalance.Load   `json:"load,omitempty"`
	Balancer *rebalance.Status `json:"balancer,omitempty"`
	// Holds has the paths, in the server's own tree, of the subtrees that it holds.
	Holds []string `json:"holds,omitempty"`
}

// SumLoad returns a server's load from the statuses of its replicas, and each counts its own requests.
func SumLoad(replicas []Status) rebalance.Load {
	var parts []rebalance.Load
	for _, r := range replicas {
		if r.Load != nil {
			parts = append(parts, *r.Load)
		}
	}
	return rebalance.SumLoads(parts)
}

// Member names a replica for POST /v1/members/add and /v1/members/remove.
type Member struct {
	Name string `json:"name"`
	Addr string `json:"addr,omitempty"` // where other replicas reach it
}

// JournalStatus is the state of a journal.
type JournalStatus struct {
	Index         int64   `json:"index"`           // records since the journal was created
	Groups        int64   `json:"groups"`          // fsyncs since the journal was opened
	Syncing       float64 `json:"fsync_s"`         // seconds of writing and syncing since the journal was opened
	LongestSync   float64 `json:"longest_fsync_s"` // seconds of the slowest group
	LogBytes      int64   `json:"log_bytes"`       // bytes of all segments
	SnapshotIndex int64   `json:"snapshot_index"`  // records in the last snapshot
	SnapshotBytes int64   `json:"snapshot_bytes"`
	Broken        string  `json:"broken,omitempty"` // reason why the journal is read-only
}

// Recovery describes what a server found when it opened its log.
type Recovery struct {
	Snapshot uint64        `json:"snapshot"` // records in the snapshot, 0 without a snapshot
	Records  uint64        `json:"records"`  // records applied from the log after the snapshot
	Torn     int64         `json:"torn"`     // bytes of an unacknowledged write that a crash tore
	Took     time.Duration `json:"took_ns"`
}
