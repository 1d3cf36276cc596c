package local

import (
	"errors"
	"fmt"
	"path/filepath"

	"skerry/internal/kernel/cgroup"
	"skerry/internal/machine"
	"skerry/internal/topology/flavor"
)

// controlGroup makes the part's control group. It returns nil and adds a warning if that is impossible. Nodes get theirs
// when they start a process.
func (p *part) controlGroup() (*cgroup.Tree, error) {
	tree, err := cgroup.Open()
	if err == nil {
		err = tree.Group(p.record.ID).Create()
	}
	if errors.Is(err, cgroup.ErrNone) {
		p.warn("CPU and memory of nodes are not limited: %v", err)
		for _, n := range p.record.Nodes {
			p.record.Unheld = append(p.record.Unheld, machine.UnenforcedLimit{Node: n.Name, Why: err.Error()})
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p.record.Groups = true
	p.record.Unheld = p.unenforcedLimits(tree)
	p.warnUnenforced()
	return tree, nil
}

// warnUnenforced adds a warning for each kind of limit that is not enforced.
func (p *part) warnUnenforced() {
	told := map[string]bool{}
	for _, l := range p.record.Unheld {
		switch {
		case told[l.Limit]:
		case l.Limit == disk:
			p.warn("%s of nodes is not limited: %s", l.Limit, l.Why)
		default:
			p.warn("%s of nodes is not limited: this machine gives no such control group", l.Limit)
		}
		told[l.Limit] = true
	}
}

// disk is the Limit of a node's disk throughput.
const disk = "disk throughput"

func (p *part) warn(format string, args ...any) {
	p.record.Warnings = append(p.record.Warnings, fmt.Sprintf(format, args...))
}

// boundsDisk returns why disk limits are impossible, nil if they work.
func (p *part) boundsDisk(tree *cgroup.Tree) error {
	_, err := cgroup.FindDisk(filepath.Dir(filepath.Dir(p.record.Data)))
	if err == nil && !tree.Group(p.record.ID).CanLimitDisk() {
		err = cgroup.ErrNoController
	}
	return err
}

// unenforcedLimits returns the limits that the tree's control groups cannot enforce.
func (p *part) unenforcedLimits(tree *cgroup.Tree) (lacks []machine.UnenforcedLimit) {
	cpu, memory := tree.Group(p.record.ID).SupportedLimits()
	for _, n := range p.record.Nodes {
		lack := func(limit string, why error) {
			lacks = append(lacks, machine.UnenforcedLimit{Node: n.Name, Limit: limit, Why: why.Error()})
		}
		if n.CPU > 0 && !cpu {
			lack("CPU", cgroup.ErrNoController)
		}
		if n.Memory > 0 && !memory {
			lack("memory", cgroup.ErrNoController)
		}
		if n.Disk == (flavor.Disk{}) {
			continue
		}
		if why := p.boundsDisk(tree); why != nil {
			lack(disk, why)
		}
	}
	return lacks
}

func diskLimit(d flavor.Disk) cgroup.DiskLimit {
	return cgroup.DiskLimit{ReadBytes: d.ReadBytes, WriteBytes: d.WriteBytes, ReadOps: d.ReadOps, WriteOps: d.WriteOps}
}
