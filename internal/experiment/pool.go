package experiment

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"skerry/internal/base/strict"
	"skerry/internal/database"
	"skerry/internal/database/external"
	"skerry/internal/load/ycsb"
	"skerry/internal/topology"
)

// Pool is one of several workloads that run side by side in a trial, with its own clients and figures. All pools use
// the same table.
type Pool struct {
	// Name is the prefix of the pool's figures: readers.goodput, readers.read.p99.
	Name string `yaml:"name" json:"name" jsonschema:"required,pattern=^[a-z][a-z0-9_]*$"`
	// Client is the node that generates the pool's load: client-NAME. The default is the experiment's client node.
	Client *Client `yaml:"client" json:"client,omitempty"`
	// Workload is the load of the pool. Records, and the shape of a record, must be equal in all pools.
	Workload Workload `yaml:"workload" json:"workload" jsonschema:"required"`

	path string // of the workload in the file
}

// Pools are the workloads of each trial. A single workload is one pool without a name.
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

// Node is the node that generates the pool's load.
func (p Pool) Node(e Experiment) string {
	if p.Client == nil {
		return e.ClientNode()
	}
	return topology.PoolClientName(p.Name)
}

// ClientSpec is the client that generates the pool's load.
func (p Pool) ClientSpec(e Experiment) Client {
	if p.Client == nil {
		return e.Client
	}
	return *p.Client
}

// ClientNodes are the nodes that generate load. The first one is the experiment's client node.
func (e Experiment) ClientNodes() []string {
	nodes := []string{e.ClientNode()}
	for _, p := range e.Pools() {
		if n := p.Node(e); !slices.Contains(nodes, n) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// workloadLabel is the workload's name in results: "a", "readers+writers".
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

// Label is the pool's name in messages.
func (p Pool) Label() string {
	if p.Name == "" {
		return p.Workload.Label()
	}
	return p.Name + " (" + p.Workload.Label() + ")"
}

// AuditedPools are the pools that write, whose writes an audit reads back.
func (e Experiment) AuditedPools() (audited []Pool) {
	pools := e.Pools()
	for _, p := range pools {
		if len(pools) == 1 || e.writes(p) {
			audited = append(audited, p)
		}
	}
	return audited
}

// writes reports whether a pool changes records.
func (e Experiment) writes(p Pool) bool {
	w, err := e.YCSBWorkload(p)
	return err == nil && w.Mix.Update+w.Mix.Insert+w.Mix.ReadModifyWrite+w.Mix.Delete > 0
}

// poolNames are the names of the parallel workloads.
func (e Experiment) poolNames() (names []string) {
	for _, p := range e.Workloads {
		names = append(names, p.Name)
	}
	return names
}

// ErrNotLoaded means that an experiment did not come from Load or Plan, so that it was not checked.
var ErrNotLoaded = errors.New("experiment was not loaded from a file")

// Cloud is the topology with the clients, at scale 1.
func (e Experiment) Cloud() (topology.Topology, error) {
	if e.origin == nil {
		return topology.Topology{}, ErrNotLoaded
	}
	return e.origin.cloud, nil
}

// DataNodes are the nodes that run the database, in the order of the topology.
func (e Experiment) DataNodes() []string {
	if e.origin == nil {
		return nil
	}
	return slices.Clone(e.origin.nodes)
}

// ClientNode is the node that runs the load driver.
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

// ResolveDatabase returns the database of the experiment.
func (e Experiment) ResolveDatabase(databases map[string]database.Database) (database.Database, error) {
	d, err := e.lookupDatabase(databases)
	if err == nil && e.Database.Cluster != nil {
		return external.New(d, *e.Database.Cluster, filepath.Dir(e.resolvePath("experiment")))
	}
	return d, err
}

func (e Experiment) lookupDatabase(databases map[string]database.Database) (database.Database, error) {
	if e.Database.Exec == "" {
		name := e.Database.Name
		if e.Database.Cluster != nil && name == "mysql" { // one server, or several that all accept writes
			name = "galera"
		}
		return database.Lookup(databases, name)
	}
	text, err := e.readFile(e.Database.Exec)
	if err != nil {
		return nil, fmt.Errorf("read database definition: %w", err)
	}
	return database.Describe(databases, e.resolvePath(e.Database.Exec), text)
}

// YCSBWorkload returns a pool's workload in YCSB's terms.
func (e Experiment) YCSBWorkload(of Pool) (ycsb.Workload, error) {
	p, err := e.Properties(of)
	if err != nil {
		return ycsb.Workload{}, err
	}
	w, _, err := ycsb.Parse(p) // a workload on a tree uses only the records
	if err != nil {
		return w, fmt.Errorf("workload %s: %w", of.Label(), err)
	}
	return w, nil
}

// Properties returns the complete YCSB properties of a pool's workload.
func (e Experiment) Properties(of Pool) (ycsb.Properties, error) {
	p, err := e.baseProperties(of.Workload)
	if err != nil {
		return nil, err
	}
	for k, v := range of.Workload.Properties {
		p[k] = v
	}
	p["recordcount"] = fmt.Sprint(of.Workload.Records)
	// Keys are drawn for this number of operations, also if time ends the trial.
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

// baseProperties returns the properties of a workload's name or file.
func (e Experiment) baseProperties(w Workload) (ycsb.Properties, error) {
	if w.isTree() {
		return ycsb.Properties{}, nil
	}
	if w.File == "" {
		p, ok := ycsb.Builtin(w.Name)
		if !ok {
			return nil, fmt.Errorf("unknown workload %q", w.Name)
		}
		return p, nil
	}
	entries, err := e.propertyEntries(w)
	return ycsb.CollectEntries(entries), err
}

// propertyEntries returns the lines of a workload's property file, none without a file.
func (e Experiment) propertyEntries(w Workload) ([]ycsb.Entry, error) {
	if w.File == "" {
		return nil, nil
	}
	data, err := e.readFile(w.File)
	if err != nil {
		return nil, fmt.Errorf("read workload: %w", err)
	}
	entries, err := ycsb.ReadEntries(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("read workload %s: %w", w.File, err)
	}
	return entries, nil
}

// isSet reports whether the document contains a path.
func (e Experiment) isSet(path string) bool { return e.origin != nil && e.origin.root.Has(path) }

// problem returns a mistake at a path of the experiment.
func (e Experiment) problem(path, hint, format string, args ...any) strict.Problem {
	p := strict.Problem{Path: path, Message: fmt.Sprintf(format, args...), Hint: hint}
	if e.origin != nil {
		return strict.Problems{p}.Locate(e.origin.root, "")[0]
	}
	return p
}
