package protocol

import (
	"skerry/systems/consensus/member"
	"skerry/systems/metadata"
	"skerry/systems/metadata/changelog"
	"skerry/systems/metadata/rebalance"
	"skerry/systems/metadata/tree"
)

// Status is the answer of /v1/status.
type Status struct {
	Tree     tree.Counts        `json:"tree"`
	Journal  changelog.Status   `json:"journal"`
	Recovery changelog.Recovery `json:"recovery"`
	Subtrees map[string]string  `json:"subtrees"` // virtual directories and the servers that they are on
	Uptime   float64            `json:"uptime_s"`
	// Transactions with other servers that are under way.
	Transactions []metadata.Txn `json:"transactions,omitempty"`
	// Group is how the server's replicas stand, nil where there are none.
	Group *member.NodeStatus `json:"group,omitempty"`
	// Name is the server's among those that share a tree, Servers their addresses, Root the
	// one that has "/"; empty where there is one server.
	Name    string            `json:"name,omitempty"`
	Servers map[string]string `json:"servers,omitempty"`
	Root    string            `json:"root,omitempty"`
	// Asked are the requests that this process has sent to each of the others, for those who
	// asked it about the whole tree.
	Asked map[string]uint64 `json:"asked,omitempty"`
	// Load is the server's, of a group the part that this replica answers.
	Load *rebalance.Load `json:"load,omitempty"`
	// Balancer is what it has done, nil where the server balances nothing.
	Balancer *rebalance.Status `json:"balancer,omitempty"`
	// Holds are the subtrees of the whole tree that the server has: paths of its own tree.
	Holds []string `json:"holds,omitempty"`
}

// SumLoad is what a server has to do, from the status of each of its replicas, which count
// what they answer themselves.
func SumLoad(replicas []Status) rebalance.Load {
	var parts []rebalance.Load
	for _, r := range replicas {
		if r.Load != nil {
			parts = append(parts, *r.Load)
		}
	}
	return rebalance.SumLoads(parts)
}

// Member is a replica of a server: what POST /v1/members/add and /v1/members/remove take.
type Member struct {
	Name string `json:"name"`
	Addr string `json:"addr,omitempty"` // where the other replicas reach it
}
