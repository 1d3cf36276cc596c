package experiment

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"skerry/internal/base/strict"
	"skerry/internal/database"
	"skerry/internal/load/ycsb"
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

// ClientSpec is the client that a pool's load comes from.
func (p Pool) ClientSpec(e Experiment) Client {
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

// AuditedPools are the pools whose writes an audit reads back: those that write.
func (e Experiment) AuditedPools() (audited []Pool) {
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
	w, err := e.YCSBWorkload(p)
	return err == nil && w.Mix.Update+w.Mix.Insert+w.Mix.ReadModifyWrite+w.Mix.Delete > 0
}

// poolNames are the names of the workloads that run side by side.
func (e Experiment) poolNames() (names []string) {
	for _, p := range e.Workloads {
		names = append(names, p.Name)
	}
	return names
}

// ErrNotLoaded says that an experiment did not come from Load or Plan, so that nobody
// checked it.
var ErrNotLoaded = errors.New("the experiment was not loaded from a file")

// Cloud is the topology with the client in it, at scale 1.
func (e Experiment) Cloud() (topology.Topology, error) {
	if e.origin == nil {
		return topology.Topology{}, ErrNotLoaded
	}
	return e.origin.cloud, nil
}

// DataNodes are the nodes that carry the database, in the order of the topology.
func (e Experiment) DataNodes() []string {
	if e.origin == nil {
		return nil
	}
	return slices.Clone(e.origin.nodes)
}

// ClientNode is the node that the load driver runs on.
func (e Experiment) ClientNode() string {
	if e.origin != nil {
		for _, n := range e.origin.cloud.Nodes {
			if n.Role == topology.Client {
				return n.Name
			}
		}
	}
	return topology.ClientName
}

// ResolveDatabase finds the database that the experiment is about.
func (e Experiment) ResolveDatabase(databases map[string]database.Database) (database.Database, error) {
	if e.Database.Exec == "" {
		return database.Lookup(databases, e.Database.Name)
	}
	text, err := e.readFile(e.Database.Exec)
	if err != nil {
		return nil, fmt.Errorf("reading the definition of a database: %w", err)
	}
	return database.Describe(databases, e.resolvePath(e.Database.Exec), text)
}

// YCSBWorkload is a pool's workload as YCSB describes it: the built-in one or the file, under the
// properties, with records and operations put in.
func (e Experiment) YCSBWorkload(of Pool) (ycsb.Workload, error) {
	p, err := e.Properties(of)
	if err != nil {
		return ycsb.Workload{}, err
	}
	w, _, err := ycsb.Parse(p) // of a workload on a tree no more than the records count
	if err != nil {
		return w, fmt.Errorf("workload %s: %w", of.Label(), err)
	}
	return w, nil
}

// Properties are the YCSB properties of a pool's workload, complete.
func (e Experiment) Properties(of Pool) (ycsb.Properties, error) {
	p, err := e.baseProperties(of.Workload)
	if err != nil {
		return nil, err
	}
	for k, v := range of.Workload.Properties {
		p[k] = v
	}
	p["recordcount"] = fmt.Sprint(of.Workload.Records)
	// Also where time ends a trial, this is the number of operations that keys are drawn for.
	switch {
	case of.Workload.ExpectedOperations > 0:
		p["operationcount"] = fmt.Sprint(of.Workload.ExpectedOperations)
	case e.Stop.Operations > 0 && e.Stop.Operations < Endless:
		p["operationcount"] = fmt.Sprint(e.Stop.Operations)
	case p["operationcount"] == "":
		p["operationcount"] = p["recordcount"]
	}
	return p, nil
}

// baseProperties are the properties of a workload's name or file.
func (e Experiment) baseProperties(w Workload) (ycsb.Properties, error) {
	if w.isTree() {
		return ycsb.Properties{}, nil
	}
	if w.File == "" {
		p, ok := ycsb.Builtin(w.Name)
		if !ok {
			return nil, fmt.Errorf("there is no workload %q", w.Name)
		}
		return p, nil
	}
	entries, err := e.propertyEntries(w)
	return ycsb.CollectEntries(entries), err
}

// propertyEntries are the lines of a workload's property file, none where it has no file.
func (e Experiment) propertyEntries(w Workload) ([]ycsb.Entry, error) {
	if w.File == "" {
		return nil, nil
	}
	data, err := e.readFile(w.File)
	if err != nil {
		return nil, fmt.Errorf("reading the workload: %w", err)
	}
	entries, err := ycsb.ReadEntries(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("reading the workload %s: %w", w.File, err)
	}
	return entries, nil
}

// isSet says whether the document itself holds a path, as opposed to a default.
func (e Experiment) isSet(path string) bool { return e.origin != nil && e.origin.root.Has(path) }

// problem is a mistake at a path of the experiment.
func (e Experiment) problem(path, hint, format string, args ...any) strict.Problem {
	p := strict.Problem{Path: path, Message: fmt.Sprintf(format, args...), Hint: hint}
	if e.origin != nil {
		return strict.Problems{p}.Locate(e.origin.root, "")[0]
	}
	return p
}
