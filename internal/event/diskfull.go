package event

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"skerry/internal/unit"
)

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

// filler is a host whose disk can be full.
type filler interface {
	FillDisk() error
	FreeDisk() error
}

func (d *DiskFull) draw(s Stage, turn int, busy map[string]bool, r *rand.Rand) action {
	on := func(do func(filler) error) func(context.Context, *World, string, *progress) error {
		return func(_ context.Context, w *World, node string, _ *progress) error {
			h, err := w.Host(node)
			if err != nil {
				return err
			}
			f, ok := h.(filler)
			if !ok {
				return fmt.Errorf("filling the disk of %s: %w here", node, ErrUnavailable)
			}
			return do(f)
		}
	}
	return newOnNodes(onNodes{
		nodes: d.Nodes.draw(s, turn, busy, r), text: "disk of %s full", do: on(filler.FillDisk), undo: on(filler.FreeDisk),
	})
}

// Disks are the nodes that must be on a disk of their own before anything starts on them,
// with its size in bytes.
func Disks(events []Event, s Stage) map[string]int64 {
	sizes := map[string]int64{}
	for _, e := range events {
		if e.DiskFull == nil {
			continue
		}
		nodes, _ := s.nodes(e.DiskFull.Nodes.Nodes)
		for _, n := range nodes {
			sizes[n] = max(sizes[n], int64(e.DiskFull.Size))
		}
	}
	return sizes
}

// MountDisks puts nodes on disks of their own.
func (w *World) MountDisks(sizes map[string]int64) error {
	var errs []error
	for name, size := range sizes {
		h, err := w.Host(name)
		if err != nil {
			return err
		}
		m, ok := h.(interface{ MountDisk(bytes int64) error })
		if !ok {
			return fmt.Errorf("a disk for %s: %w here", name, ErrUnavailable)
		}
		errs = append(errs, m.MountDisk(size))
	}
	return errors.Join(errs...)
}
