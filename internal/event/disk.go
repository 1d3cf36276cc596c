package event

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"skerry/internal/base/unit"
	"skerry/internal/kernel/cgroup"
	"skerry/internal/machine/host"
	"skerry/internal/record"
)

var diskSlowKind = Kind{
	Name: "disk_slow", Summary: "limits the disk throughput of nodes.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Changed},
	Docs: Docs{SectionResources, []Row{{Examples: []string{`{nodes: Seoul, write: 1MiB, read_ops: 50}`},
		Text: `limits bytes and operations per second on the disk that holds the node's directory. ` +
			`Control groups of version 1 limit direct and synchronous writes only, such as those of database logs, ` +
			`not writes through the page cache`}}},
	NeedsDisks: true,
	newSpec:    func() kindSpec { return new(DiskSlow) },
}

// DiskSlow limits the disk throughput of the processes of nodes, on the disk that holds the node's
// directory. Of several limits, the lowest applies. Control groups of version 1 limit direct and
// synchronous writes only, such as those of database logs; they do not limit writes through the
// page cache.
type DiskSlow struct {
	NodeSelector `yaml:",inline"`
	// Read is the limit of bytes read per second.
	Read *unit.Bytes `yaml:"read" json:"read,omitempty"`
	// Write is the limit of bytes written per second.
	Write *unit.Bytes `yaml:"write" json:"write,omitempty"`
	// ReadOps is the limit of read operations per second.
	ReadOps int64 `yaml:"read_ops" json:"read_ops,omitempty" jsonschema:"minimum=1"`
	// WriteOps is the limit of write operations per second.
	WriteOps int64 `yaml:"write_ops" json:"write_ops,omitempty" jsonschema:"minimum=1"`
}

func (d *DiskSlow) limit() cgroup.DiskLimit {
	l := cgroup.DiskLimit{ReadOps: d.ReadOps, WriteOps: d.WriteOps}
	if d.Read != nil {
		l.ReadBytes = int64(*d.Read)
	}
	if d.Write != nil {
		l.WriteBytes = int64(*d.Write)
	}
	return l
}

func (d *DiskSlow) check(s Layout, fail failure) {
	d.NodeSelector.resolve(s, fail)
	if d.limit() == (cgroup.DiskLimit{}) {
		fail("", "give write: 1MiB, read, read_ops or write_ops", "disk limit missing")
	}
}

func (d *DiskSlow) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	var parts []string
	for _, x := range []struct {
		what  string
		bytes *unit.Bytes
		ops   int64
	}{{"read", d.Read, d.ReadOps}, {"write", d.Write, d.WriteOps}} {
		if x.bytes != nil {
			parts = append(parts, fmt.Sprintf("%s %v/s", x.what, *x.bytes))
		}
		if x.ops > 0 {
			parts = append(parts, fmt.Sprintf("%s %d times/s", x.what, x.ops))
		}
	}
	limit := d.limit()
	return newNodeAction(nodeAction{
		nodes: d.NodeSelector.draw(s, turn, busy, r), text: "disk of %s slow: " + strings.Join(parts, ", "),
		do: func(_ context.Context, w *Testbed, node string, _ *progress) error {
			return w.addDiskLimit(node, &limit)
		},
		undo: func(_ context.Context, w *Testbed, node string, _ *progress) error {
			return w.removeDiskLimit(node, &limit)
		},
	})
}

type diskLimits struct {
	mu     sync.Mutex
	byNode map[string][]*cgroup.DiskLimit
}

func (w *Testbed) addDiskLimit(name string, l *cgroup.DiskLimit) error {
	w.diskLimits.mu.Lock()
	defer w.diskLimits.mu.Unlock()
	if w.diskLimits.byNode == nil {
		w.diskLimits.byNode = map[string][]*cgroup.DiskLimit{}
	}
	before := w.diskLimits.byNode[name]
	w.diskLimits.byNode[name] = append(before[:len(before):len(before)], l)
	if err := w.applyDiskLimit(name); err != nil {
		w.diskLimits.byNode[name] = before
		return err
	}
	return nil
}

func (w *Testbed) removeDiskLimit(name string, l *cgroup.DiskLimit) error {
	w.diskLimits.mu.Lock()
	defer w.diskLimits.mu.Unlock()
	var left []*cgroup.DiskLimit
	for _, x := range w.diskLimits.byNode[name] {
		if x != l {
			left = append(left, x)
		}
	}
	w.diskLimits.byNode[name] = left
	return w.applyDiskLimit(name)
}

func (w *Testbed) applyDiskLimit(name string) error {
	d, err := w.controls(name, "limit the disk of")
	if err != nil {
		return err
	}
	var bound cgroup.DiskLimit
	for _, x := range w.diskLimits.byNode[name] {
		bound = bound.Stricter(*x)
	}
	err = d.LimitDisk(bound)
	if errors.Is(err, cgroup.ErrNoController) || errors.Is(err, host.ErrNoGroup) {
		return fmt.Errorf("%w: %w", errUnavailable, err)
	}
	return err
}

var diskFullKind = Kind{
	Name: "disk_full", Summary: "fills the disk of nodes.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Changed},
	Docs: Docs{SectionResources, []Row{{Examples: []string{`{nodes: Seoul, size: 1GiB}`},
		Text: `writes fail with ENOSPC. The node's directory is on a memory disk of this size from the start of the trial, ` +
			`so that the machine's own disk is not affected. Data on the memory disk counts as memory of the node`}}},
	Preparation: "disks that are mounted before the database starts",
	newSpec:     func() kindSpec { return new(DiskFull) },
}

// DiskFull leaves no space on the disk of nodes. The directories of these nodes are on a memory
// disk of the given size from the start of the trial, so that the machine's own disk is not
// affected. Data on the memory disk counts as memory of the node.
type DiskFull struct {
	NodeSelector `yaml:",inline"`
	// Size is the capacity of the nodes' disks.
	Size unit.Bytes `yaml:"size" json:"size" jsonschema:"default=1GiB"`
}

const minDisk = 16 << 20

func (d *DiskFull) check(s Layout, fail failure) {
	d.NodeSelector.resolve(s, fail)
	if d.Size < minDisk {
		fail("size", "give 1GiB", "%v is too small for a database to start", d.Size)
	}
}

func (d *DiskFull) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	on := func(do func(host.Controls) error) func(context.Context, *Testbed, string, *progress) error {
		return func(_ context.Context, w *Testbed, node string, _ *progress) error {
			c, err := w.controls(node, "fill the disk of")
			if err != nil {
				return err
			}
			return do(c)
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

// DiskSizes returns the nodes that need a disk of their own before anything starts on them, with
// its size in bytes.
func DiskSizes(events []Event, s Layout) map[string]int64 {
	sizes := map[string]int64{}
	for _, e := range events {
		x, ok := e.Spec.spec.(diskReserver)
		if !ok {
			continue
		}
		for node, size := range x.diskSizes(s) {
			sizes[node] = max(sizes[node], size)
		}
	}
	return sizes
}

// MountDisks mounts a memory disk of the given size on each node.
func (w *Testbed) MountDisks(sizes map[string]int64) error {
	var errs []error
	for name, size := range sizes {
		m, err := w.controls(name, "mount a disk for")
		if err != nil {
			return err
		}
		errs = append(errs, m.MountDisk(size))
	}
	return errors.Join(errs...)
}
