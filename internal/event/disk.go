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
	Name: "disk_slow", Summary: "bounds what nodes read from and write to their disk.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Changed},
	Docs: Docs{SectionResources, []Row{{Examples: []string{`{nodes: Seoul, write: 1MiB, read_ops: 50}`},
		Text: `the disk of the node's directory gives no more bytes and operations a second. Control groups of version 1 hold back only direct and ` +
			`synchronous writing, as of databases' logs, and nothing that goes through the page cache`}}},
	NeedsDisks: true,
	newSpec:    func() kindSpec { return new(DiskSlow) },
}

// DiskSlow bounds what the processes of nodes read from and write to the disk that their
// directories are on. Of several at once the tightest bound holds. Control groups of version
// 1 do not hold back what is written through the page cache: only direct and synchronous
// writing, as of databases' logs.
type DiskSlow struct {
	NodeSelector `yaml:",inline"`
	// Read is how many bytes a second may be read, Write how many written.
	Read *unit.Bytes `yaml:"read" json:"read,omitempty"`
	// Write is how many bytes a second may be written.
	Write *unit.Bytes `yaml:"write" json:"write,omitempty"`
	// ReadOps is how many reads a second there may be.
	ReadOps int64 `yaml:"read_ops" json:"read_ops,omitempty" jsonschema:"minimum=1"`
	// WriteOps is how many writes a second there may be.
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
		fail("", "give write: 1MiB, read, read_ops or write_ops", "nothing says how slow the disk becomes")
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

// diskLimits are the bounds in force, by node.
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
	h, err := w.Host(name)
	if err != nil {
		return err
	}
	d, ok := h.(host.Controls)
	if !ok {
		return fmt.Errorf("slowing the disk of %s: %w here", name, ErrUnavailable)
	}
	var bound cgroup.DiskLimit
	for _, x := range w.diskLimits.byNode[name] {
		bound = bound.Tightest(*x)
	}
	err = d.LimitDisk(bound)
	if errors.Is(err, cgroup.ErrNoController) || errors.Is(err, host.ErrNoGroup) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

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

// DiskSizes are the nodes that must be on a disk of their own before anything starts on them,
// with its size in bytes.
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

// MountDisks puts nodes on disks of their own.
func (w *Testbed) MountDisks(sizes map[string]int64) error {
	var errs []error
	for name, size := range sizes {
		h, err := w.Host(name)
		if err != nil {
			return err
		}
		m, ok := h.(host.Controls)
		if !ok {
			return fmt.Errorf("a disk for %s: %w here", name, ErrUnavailable)
		}
		errs = append(errs, m.MountDisk(size))
	}
	return errors.Join(errs...)
}
