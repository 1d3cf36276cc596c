package protocol

import (
	"skerry/systems/consensus/member"
	"skerry/systems/metadata"
	"skerry/systems/metadata/changelog"
	"skerry/systems/metadata/rebalance"
	"skerry/systems/metadata/tree"
)

// Status is the answer to GET /v1/status.
type Status struct {
	Tree     tree.Counts        `json:"tree"`
	Journal  changelog.Status   `json:"journal"`
	Recovery changelog.Recovery `json:"recovery"`
	Subtrees map[string]string  `json:"subtrees"` // owners of virtual directories
	Uptime   float64            `json:"uptime_s"`
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
	Load *rebalance.Load `json:"load,omitempty"`
	// Balancer is nil if the server does not balance.
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
