package experiment

import (
	"slices"

	"skerry/internal/load/mdtest"
)

// onTree tells whether the workload is one on a directory tree.
func (w Workload) onTree() bool { return w.File == "" && slices.Contains(mdtest.Names(), w.Name) }

// Tree is the workload on a directory tree, nil where it is one on records.
func (e Experiment) Tree() (*mdtest.Workload, error) {
	if !e.Workload.onTree() {
		return nil, nil
	}
	return mdtest.Parse(e.Workload.Name, e.Workload.Records, e.Workload.Properties)
}

// tree checks a workload on a directory tree.
func (c *checker) tree() {
	if _, err := c.e.Tree(); err != nil {
		c.badProperties(err)
	}
	if c.e.Workload.Probes != nil {
		c.fail("workload.probes", "leave them out", "jobs on a directory tree would use the same names")
	}
}

// asksTree tells whether a workload on a directory tree has an operation.
func asksTree(w *mdtest.Workload, operation string) bool {
	for k := range mdtest.Kinds {
		if operationOf(k.String()) == operation {
			return w.Uses(k)
		}
	}
	return false
}
