package changelog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	// groupHeader is the size of a group's header: checksum of the following bytes (4), length of the records (4), index
	// of the first record (8), little-endian.
	groupHeader = 16
	// MaxRecord is the maximum size of a record in bytes.
	MaxRecord = 16 << 20
	// groupLimit is the size at which a group accepts no further record.
	groupLimit = 4 << 20
	// maxGroup is the maximum size of the records of a group.
	maxGroup = groupLimit + MaxRecord + binary.MaxVarintLen64
)

func beginGroup(b []byte) []byte { return append(b[:0], make([]byte, groupHeader)...) }

func addRecord(b, record []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(record))), record...)
}

func endGroup(b []byte, first uint64) {
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-groupHeader))
	binary.LittleEndian.PutUint64(b[8:], first)
	binary.LittleEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
}

type group struct {
	first   uint64
	records [][]byte
	size    int // bytes, with header
}

// readGroup decodes the group at the beginning of b. ok is false if there is no valid group.
func readGroup(b []byte) (g group, ok bool) {
	if len(b) < groupHeader {
		return g, false
	}
	n := binary.LittleEndian.Uint32(b[4:])
	if n == 0 || n > maxGroup || int(n) > len(b)-groupHeader {
		return g, false
	}
	b = b[:groupHeader+int(n)]
	if crc32.Checksum(b[4:], castagnoli) != binary.LittleEndian.Uint32(b) {
		return g, false
	}
	g = group{first: binary.LittleEndian.Uint64(b[8:]), size: len(b)}
	for b = b[groupHeader:]; len(b) > 0; {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return g, false
		}
		g.records = append(g.records, b[size:size+int(n)])
		b = b[size+int(n):]
	}
	return g, true
}

// containsGroup reports whether a valid group of records after index begins anywhere in b.
func containsGroup(b []byte, index uint64) bool {
	for at := range b {
		if len(b)-at < groupHeader {
			return false
		}
		first := binary.LittleEndian.Uint64(b[at+8:])
		if first <= index || first > index+1<<32 {
			continue
		}
		if _, ok := readGroup(b[at:]); ok {
			return true
		}
	}
	return false
}

// Recovery describes what Open found.
type Recovery struct {
	Snapshot uint64        `json:"snapshot"` // records in the snapshot, 0 without a snapshot
	Records  uint64        `json:"records"`  // records applied from the log after the snapshot
	Torn     int64         `json:"torn"`     // bytes of an unacknowledged group that a crash tore
	Took     time.Duration `json:"took_ns"`
}

// recover restores the machine from disk, and opens the last segment.
func (j *Journal) recover() (r Recovery, err error) {
	start := time.Now()
	index, size, err := LoadSnapshot(j.dir, j.machine.Restore)
	if err != nil {
		return r, err
	}
	r.Snapshot = index
	j.snapIndex.Store(int64(index))
	j.snapBytes.Store(size)
	j.next = r.Snapshot + 1
	segments, err := listFiles(j.dir, segmentPrefix)
	if err != nil {
		return r, err
	}
	// After a crash between a snapshot and the deletion of covered segments, segments from before the snapshot remain.
	for len(segments) > 0 && segments[0].index <= r.Snapshot {
		if err := os.Remove(segments[0].path); err != nil {
			return r, err
		}
		segments = segments[1:]
	}
	end := int64(0)
	for i, s := range segments {
		if end, err = j.replay(s, i == len(segments)-1, &r); err != nil {
			return r, err
		}
	}
	if len(segments) == 0 {
		j.segment, err = j.newSegment(j.next)
	} else {
		j.segment, err = j.openSegment(segments[len(segments)-1], end)
	}
	j.index.Store(int64(j.next - 1))
	r.Took = time.Since(start)
	return r, err
}

func corruptError(path string, err error) error {
	return advice.With(fmt.Errorf("%s: %w", path, err), "restore the directory from a backup or from another replica")
}

// replay applies a segment's records, and returns the end of its valid groups. It cuts off an invalid end of the last
// segment, unless a valid group follows.
func (j *Journal) replay(s indexedFile, last bool, r *Recovery) (end int64, err error) {
	if s.index != j.next {
		return 0, corruptError(s.path, fmt.Errorf("%w: records %d to %d are missing before this segment", ErrCorrupt, j.next, s.index-1))
	}
	b, unmap, err := mapFile(s.path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, unmap()) }()
	rest := b
	for len(rest) > 0 {
		g, ok := readGroup(rest)
		if !ok || g.first != j.next {
			break
		}
		for _, record := range g.records {
			j.machine.Apply(j.next, record)
			j.next++
			r.Records++
		}
		j.written += int64(g.size)
		rest = rest[g.size:]
	}
	end = int64(len(b) - len(rest))
	j.logBytes.Add(end)
	if len(rest) == 0 {
		return end, nil
	}
	if g, ok := readGroup(rest); ok || !last || containsGroup(rest, j.next-1) {
		if ok {
			return 0, corruptError(s.path, fmt.Errorf("%w: found record %d instead of %d at byte %d", ErrCorrupt, g.first, j.next, end))
		}
		return 0, corruptError(s.path, fmt.Errorf("%w: record %d at byte %d is damaged, and valid records follow", ErrCorrupt, j.next, end))
	}
	r.Torn = int64(len(rest))
	return end, truncateFile(s.path, end)
}

func truncateFile(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Sync(), f.Close())
}

func mapFile(path string) (b []byte, unmap func() error, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return nil, func() error { return nil }, err
	}
	b, err = unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("mapping %s: %w", path, err)
	}
	return b, func() error { return unix.Munmap(b) }, nil
}
