package database

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/unit"
	"skerry/internal/machine/host"
)

// ErrDiskFull means that the disk of a node is full.
var ErrDiskFull = errors.New("the disk is full")

const (
	// fullShare is the fraction of a disk, at most fullBytes, that servers need free.
	fullShare = 8
	fullBytes = 256 << 20
	// explainTime bounds the queries for free space.
	explainTime = 5 * time.Second
)

// ExplainDiskFull adds to an error the nodes without free disk space; the result then wraps ErrDiskFull. It also
// works after the end of ctx. Other errors are returned unchanged.
func ExplainDiskFull(ctx context.Context, err error, nodes []host.Host) error {
	if err == nil || errors.Is(err, ErrDiskFull) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), explainTime)
	defer cancel()
	disks := make(map[string]*disk)
	var order []*disk
	for _, n := range nodes {
		space, e := n.Files().Space(ctx, n.Dir())
		if e != nil {
			continue // its directory is gone: that explains nothing
		}
		d := disks[space.Disk]
		if d == nil {
			d = &disk{dir: n.Dir(), free: space.Free, size: space.Size}
			disks[space.Disk] = d
			order = append(order, d)
		}
		d.nodes = append(d.nodes, n.Name())
	}
	var full []error
	for _, d := range order {
		if d.full() {
			full = append(full, fmt.Errorf("%w: %v of %v are free for %s (%s)", ErrDiskFull, unit.Bytes(d.free), unit.Bytes(d.size),
				strings.Join(d.nodes, ", "), d.dir))
		}
	}
	if len(full) == 0 {
		return err
	}
	return advice.With(errors.Join(append([]error{err}, full...)...),
		"make room there, load fewer records, or keep labs elsewhere by SKERRY_DATA")
}

// disk is a disk with the directories of some nodes. Sizes are in bytes.
type disk struct {
	dir        string
	nodes      []string
	free, size int64
}

func (d *disk) full() bool { return d.free < min(d.size/fullShare, fullBytes) }
