package experiment

import (
	"fmt"
	"slices"
	"strings"

	"skerry/internal/topology"
)

// Pool is one of several workloads that run side by side in a trial: clients of its own, with
// figures of their own. All pools work on the same table.
type Pool struct {
	// Name stands before the pool's figures: readers.goodput, readers.read.p99.
	Name string `yaml:"name" json:"name" jsonschema:"required,pattern=^[a-z][a-z0-9_]*$"`
	// Client is where the pool's load comes from, a node of its own: client-NAME. Left out, it comes from
	// the experiment's client node.
	Client *Client `yaml:"client" json:"client,omitempty"`
	// Workload is what the pool asks for. Records, and the shape of a record, are the same for all pools.
	Workload Workload `yaml:"workload" json:"workload" jsonschema:"required"`

	path string // of the workload in the file
}

// Pools are the workloads of each trial. A single workload is one pool, without a name.
func (e Experiment) Pools() []Pool {
	if len(e.Workloads) == 0 {
		return []Pool{{Workload: e.Workload, path: "workload"}}
	}
	pools := slices.Clone(e.Workloads)
	for i := range pools {
		pools[i].path = fmt.Sprintf("workloads[%d].workload", i)
	}
	return pools
}

// Node is the node that a pool's load comes from.
func (p Pool) Node(e Experiment) string {
	if p.Client == nil {
		return e.ClientNode()
	}
	return topology.PoolClient(p.Name)
}

// Place is the client that a pool's load comes from.
func (p Pool) Place(e Experiment) Client {
	if p.Client == nil {
		return e.Client
	}
	return *p.Client
}

// ClientNodes are the nodes that load comes from. The first one is the experiment's own.
func (e Experiment) ClientNodes() []string {
	nodes := []string{e.ClientNode()}
	for _, p := range e.Pools() {
		if n := p.Node(e); !slices.Contains(nodes, n) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// workloadLabel is how results call what a trial asks for: "a", "readers+writers".
func (e Experiment) workloadLabel() string {
	var names []string
	for _, p := range e.Pools() {
		if p.Name == "" {
			return p.Workload.Label()
		}
		names = append(names, p.Name)
	}
	return strings.Join(names, "+")
}

// Label is how messages call a pool's workload.
func (p Pool) Label() string {
	if p.Name == "" {
		return p.Workload.Label()
	}
	return p.Name + " (" + p.Workload.Label() + ")"
}

// Audited are the pools whose writes an audit reads back: those that write.
func (e Experiment) Audited() (audited []Pool) {
	pools := e.Pools()
	for _, p := range pools {
		if len(pools) == 1 || e.writes(p) {
			audited = append(audited, p)
		}
	}
	return audited
}

// writes tells whether a pool changes records.
func (e Experiment) writes(p Pool) bool {
	w, err := e.YCSB(p)
	return err == nil && w.Mix.Update+w.Mix.Insert+w.Mix.ReadModifyWrite+w.Mix.Delete > 0
}

// poolNames are the names of the workloads that run side by side.
func (e Experiment) poolNames() (names []string) {
	for _, p := range e.Workloads {
		names = append(names, p.Name)
	}
	return names
}
