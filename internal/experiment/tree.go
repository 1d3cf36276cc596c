package experiment

import (
	"slices"

	"skerry/internal/load/mdtest"
)

// onTree tells whether the workload is one on a directory tree.
func (w Workload) onTree() bool { return w.File == "" && slices.Contains(mdtest.Names(), w.Name) }

// Tree is the workload on a directory tree, nil where it is one on records.
func (w Workload) Tree() (*mdtest.Workload, error) {
	if !w.onTree() {
		return nil, nil
	}
	return mdtest.Parse(w.Name, w.Records, w.Properties)
}

// tree checks a workload on a directory tree.
func (c *checker) tree(path string, w *Workload) {
	if _, err := w.Tree(); err != nil {
		c.badProperties(path, w, err)
	}
	if w.Probes != nil {
		c.fail(path+".probes", "leave them out", "jobs on a directory tree would use the same names")
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
