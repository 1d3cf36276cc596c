package event

import (
	"context"
	"fmt"
	"math/rand/v2"

	"skerry/internal/base/unit"
	"skerry/internal/machine/host"
	"skerry/internal/record"
)

var diskFullKind = Kind{
	Name: "disk_full", Summary: "leaves no space on the disk of nodes.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Changed},
	Docs: Docs{SectionResources, []Row{{Examples: []string{`{nodes: Seoul, size: 1GiB}`},
		Text: `writing fails with ENOSPC. The node's directory is on a disk of that size in memory from the beginning of the trial, so that the machine's ` +
			`own disk is not harmed. What is on that disk counts as the node's memory`}}},
	Preparation: "disks that are made before the database starts",
	newSpec:     func() kindSpec { return new(DiskFull) },
}

// DiskFull leaves no space on the disk of nodes. So that the machine's own disk stays as it
// is, the directories of nodes that it may happen to are in memory from the begin of the
// trial on, bounded by size: what is there counts as memory of the node.
type DiskFull struct {
	NodeSelector `yaml:",inline"`
	// Size is that of the nodes' disks before they are full.
	Size unit.Bytes `yaml:"size" json:"size" jsonschema:"default=1GiB"`
}

// minDisk is less than any database starts on.
const minDisk = 16 << 20

func (d *DiskFull) check(s Layout, fail failure) {
	d.NodeSelector.resolve(s, fail)
	if d.Size < minDisk {
		fail("size", "1GiB is usual", "%v are too few for anything to start on", d.Size)
	}
}

func (d *DiskFull) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	on := func(do func(host.Controls) error) func(context.Context, *Testbed, string, *progress) error {
		return func(_ context.Context, w *Testbed, node string, _ *progress) error {
			h, err := w.Host(node)
			if err != nil {
				return err
			}
			f, ok := h.(host.Controls)
			if !ok {
				return fmt.Errorf("filling the disk of %s: %w here", node, ErrUnavailable)
			}
			return do(f)
		}
	}
	return newNodeAction(nodeAction{
		nodes: d.NodeSelector.draw(s, turn, busy, r), text: "disk of %s full", do: on(host.Controls.FillDisk), undo: on(host.Controls.FreeDisk),
	})
}

func (d *DiskFull) diskSizes(s Layout) map[string]int64 {
	sizes := map[string]int64{}
	nodes, _ := s.resolveNames(d.NodeSelector.Nodes)
	for _, n := range nodes {
		sizes[n] = int64(d.Size)
	}
	return sizes
}
