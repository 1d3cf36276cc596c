package changelog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"skerry/internal/base/advice"
	"skerry/internal/base/atomicfile"
	"skerry/systems/consensus/wal"
	"skerry/systems/metadata/protocol"
)

const (
	// MaxRecord is the maximum size of a record in bytes.
	MaxRecord = 16 << 20
	// groupLimit is the size in bytes at which a group accepts no further record.
	groupLimit = 4 << 20
	// replayBytes is the maximum size of the records that one read of the log returns.
	replayBytes = 4 << 20

	// version is the layout of the directory.
	version     = 2
	versionFile = "version"
	// owner is the cluster in the headers of the log. Logs of a raft group have other owners, so neither opens the other's.
	owner = "metadata-changelog"
)

func (j *Journal) openLog() error {
	disk, err := j.o.fs(j.dir)
	if errors.Is(err, wal.ErrLocked) {
		return advice.With(fmt.Errorf("%s: %w", j.dir, ErrInUse), "stop the other server, or give this server another --data directory")
	}
	if err != nil {
		return err
	}
	if err := checkVersion(j.dir); err != nil {
		return errors.Join(err, disk.Close())
	}
	j.log, err = wal.Open(disk, wal.Options{Cluster: owner, ID: 1, Segment: j.o.SegmentBytes})
	switch {
	case errors.Is(err, wal.ErrCorrupt):
		return corruptError(j.dir, fmt.Errorf("%w: %w", ErrCorrupt, err))
	case errors.Is(err, wal.ErrVersion):
		return newerError(j.dir, err)
	}
	return err
}

// checkVersion writes the version into a new directory, and refuses directories of other versions.
func checkVersion(dir string) error {
	path := filepath.Join(dir, versionFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return atomicfile.Write(path, func(w io.Writer) error { _, err := fmt.Fprintln(w, version); return err })
	}
	if err != nil {
		return err
	}
	v, err := strconv.Atoi(strings.TrimSpace(string(text)))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w: invalid version %.20q", path, ErrCorrupt, text)
	case v != version:
		return newerError(path, fmt.Errorf("version %d, this program supports %d", v, version))
	}
	return nil
}

func newerError(path string, err error) error {
	return advice.With(fmt.Errorf("%s: %w: %w", path, ErrNewer, err), "use the version of metad that wrote it, or a later one")
}

func corruptError(path string, err error) error {
	return advice.With(fmt.Errorf("%s: %w", path, err), "restore the directory from a backup or from another replica")
}

// recover restores the machine from the last snapshot and the log after it.
//
// Invariant: the log has every record after the snapshot. A snapshot of index i is written after record i is durable, and
// the log is compacted up to i after the snapshot is durable. A log that begins after i+1, or ends before i, has lost
// acknowledged records, and recover refuses it. A crash between snapshot and compaction leaves records at or below i in the
// log. They are in the snapshot and are not applied again.
func (j *Journal) recover() (r protocol.LogRecovery, err error) {
	start := time.Now()
	index, size, err := LoadSnapshot(j.dir, j.machine.Restore)
	if err != nil {
		return r, err
	}
	r.Snapshot, r.Torn = index, j.log.Torn()
	j.snapIndex.Store(int64(index))
	j.snapBytes.Store(size)
	first, _ := j.log.FirstIndex() // neither returns errors
	last, _ := j.log.LastIndex()
	if first > index+1 || last < index {
		return r, corruptError(j.dir, fmt.Errorf("%w: the snapshot ends at record %d, the log has records %d to %d",
			ErrCorrupt, index, first, last))
	}
	j.next = index + 1
	for j.next <= last {
		entries, err := j.log.Entries(j.next, last+1, replayBytes)
		if err != nil {
			return r, corruptError(j.dir, fmt.Errorf("%w: %w", ErrCorrupt, err))
		}
		for _, e := range entries {
			j.apply(e)
		}
	}
	r.Records = last - index
	j.written = j.log.BytesAfter(index)
	j.index.Store(int64(last))
	r.Took = time.Since(start)
	return r, nil
}

func (j *Journal) apply(e *raftpb.Entry) any {
	result := j.machine.Apply(j.next, e.GetData())
	j.next++
	return result
}
