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
	Name: "disk_full", Says: "leaves no space on the disk of nodes.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Changed},
	Docs: Docs{SectionResources, []Row{{Examples: []string{`{nodes: Seoul, size: 1GiB}`},
		Says: `writing fails with ENOSPC. The node's directory is on a disk of that size in memory from the beginning of the trial, so that the machine's ` +
			`own disk is not harmed. What is on that disk counts as the node's memory`}}},
	Prepares: "disks that are made before the database starts",
	spec:     func() spec { return new(DiskFull) },
}

// DiskFull leaves no space on the disk of nodes. So that the machine's own disk stays as it
// is, the directories of nodes that it may happen to are in memory from the begin of the
// trial on, bounded by size: what is there counts as memory of the node.
type DiskFull struct {
	Nodes `yaml:",inline"`
	// Size is that of the nodes' disks before they are full.
	Size unit.Bytes `yaml:"size" json:"size" jsonschema:"default=1GiB"`
}

// leastDisk is less than any database starts on.
const leastDisk = 16 << 20

func (d *DiskFull) check(s Stage, fail failure) {
	d.Nodes.resolve(s, fail)
	if d.Size < leastDisk {
		fail("size", "1GiB is usual", "%v are too few for anything to start on", d.Size)
	}
}

func (d *DiskFull) draw(s Stage, turn int, busy map[string]bool, r *rand.Rand) action {
	on := func(do func(host.Controls) error) func(context.Context, *World, string, *progress) error {
		return func(_ context.Context, w *World, node string, _ *progress) error {
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
	return newOnNodes(onNodes{
		nodes: d.Nodes.draw(s, turn, busy, r), text: "disk of %s full", do: on(host.Controls.FillDisk), undo: on(host.Controls.FreeDisk),
	})
}

func (d *DiskFull) disks(s Stage) map[string]int64 {
	sizes := map[string]int64{}
	nodes, _ := s.nodes(d.Nodes.Nodes)
	for _, n := range nodes {
		sizes[n] = int64(d.Size)
	}
	return sizes
}
