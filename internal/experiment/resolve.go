package experiment

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"skerry/internal/base/strict"
	"skerry/internal/database"
	"skerry/internal/load/ycsb"
	"skerry/internal/topology"
)

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

// Choose finds the database that the experiment is about.
func (e Experiment) Choose(databases map[string]database.Database) (database.Database, error) {
	if e.Database.Exec == "" {
		return database.Lookup(databases, e.Database.Name)
	}
	text, err := e.readFile(e.Database.Exec)
	if err != nil {
		return nil, fmt.Errorf("reading the definition of a database: %w", err)
	}
	return database.Describe(databases, e.path(e.Database.Exec), text)
}

// YCSB is a pool's workload as YCSB describes it: the built-in one or the file, under the
// properties, with records and operations put in.
func (e Experiment) YCSB(of Pool) (ycsb.Workload, error) {
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
	p, err := e.base(of.Workload)
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

// base are the properties of a workload's name or file.
func (e Experiment) base(w Workload) (ycsb.Properties, error) {
	if w.onTree() {
		return ycsb.Properties{}, nil
	}
	if w.File == "" {
		p, ok := ycsb.Builtin(w.Name)
		if !ok {
			return nil, fmt.Errorf("there is no workload %q", w.Name)
		}
		return p, nil
	}
	entries, err := e.entries(w)
	return ycsb.CollectEntries(entries), err
}

// entries are the lines of a workload's property file, none where it has no file.
func (e Experiment) entries(w Workload) ([]ycsb.Entry, error) {
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

// given says whether the document itself holds a path, as opposed to a default.
func (e Experiment) given(path string) bool { return e.origin != nil && e.origin.root.Has(path) }

// problem is a mistake at a path of the experiment.
func (e Experiment) problem(path, hint, format string, args ...any) strict.Problem {
	p := strict.Problem{Path: path, Message: fmt.Sprintf(format, args...), Hint: hint}
	if e.origin != nil {
		return strict.Problems{p}.Locate(e.origin.root, "")[0]
	}
	return p
}
