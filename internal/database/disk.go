package database

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"skerry/internal/advice"
	"skerry/internal/host"
	"skerry/internal/unit"
)

// ErrDiskFull says that nodes have no room left on their disk.
var ErrDiskFull = errors.New("the disk is full")

const (
	// fullShare of a disk, at most fullBytes, is less than servers work with: logs and
	// tables grow by whole segments.
	fullShare = 8
	fullBytes = 256 << 20
)

// Explain adds to a failure of a cluster which of its nodes have no room left on their
// disk: most servers tell that to nobody but their log, and clients see timeouts. The
// error then wraps ErrDiskFull. A nil error, and one of nodes with room, stays as it is.
func Explain(err error, nodes []host.Host) error {
	if err == nil || errors.Is(err, ErrDiskFull) {
		return err
	}
	disks := make(map[uint64]*disk)
	var order []*disk
	for _, n := range nodes {
		var st unix.Stat_t
		var fs unix.Statfs_t
		if errors.Join(unix.Stat(n.Dir(), &st), unix.Statfs(n.Dir(), &fs)) != nil {
			continue // its directory is gone: that explains nothing
		}
		d := disks[st.Dev]
		if d == nil {
			d = &disk{dir: n.Dir(), free: int64(fs.Bavail) * fs.Bsize, size: int64(fs.Blocks) * fs.Bsize}
			disks[st.Dev] = d
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

// disk is what directories of nodes are on; sizes are in bytes.
type disk struct {
	dir        string
	nodes      []string
	free, size int64
}

func (d *disk) full() bool { return d.free < min(d.size/fullShare, fullBytes) }
