package lab

import (
	"path/filepath"

	"skerry/internal/cgroup"
	"skerry/internal/topology"
)

// diskOf is the bound that a node's flavor sets to its disk.
func diskOf(n topology.Node) cgroup.DiskLimit {
	if n.Flavor == nil {
		return cgroup.DiskLimit{}
	}
	d := n.Flavor.Disk
	return cgroup.DiskLimit{ReadBytes: d.ReadBytes, WriteBytes: d.WriteBytes, ReadOps: d.ReadOps, WriteOps: d.WriteOps}
}

// warnDisk tells where disks of flavors cannot be bounded, and what else of flavors cannot be.
func (l *Lab) warnDisk(tree *cgroup.Tree) {
	for _, n := range l.state.Topology.Nodes {
		if diskOf(n) == (cgroup.DiskLimit{}) {
			continue
		}
		_, err := cgroup.Disk(filepath.Dir(filepath.Dir(l.state.Data)))
		if err == nil && !tree.Group(l.state.ID).LimitsDisk() {
			err = cgroup.ErrNoController
		}
		if err != nil {
			l.warn("disk throughput of nodes is not limited: %v", err)
		}
		return
	}
}
