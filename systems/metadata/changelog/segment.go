package changelog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"skerry/internal/base/atomicfile"
)

// file is what a segment is written to.
type file interface {
	Write(b []byte) (int, error)
	Sync() error // content and size, not times
	Truncate(size int64) error
	Close() error
}

// diskFile is a file on disk; it is opened for appending.
type diskFile struct{ *os.File }

func (f diskFile) Sync() error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return err
		}
	}
}

// segment is the last file of the log, which groups are appended to.
type segment struct {
	file  file
	path  string
	first uint64 // index of the first record
	size  int64  // bytes that are durable
}

// newSegment makes a segment's file, and its name durable.
func (j *Journal) newSegment(first uint64) (*segment, error) {
	path := segmentPath(j.dir, first)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("a new segment of the journal: %w", err)
	}
	if err := atomicfile.SyncDir(filepath.Dir(path)); err != nil {
		return nil, errors.Join(fmt.Errorf("a new segment of the journal: %w", err), f.Close(), os.Remove(path))
	}
	return &segment{file: j.wrap(diskFile{f}), path: path, first: first}, nil
}

// openSegment opens the last segment of a journal to append to it.
func (j *Journal) openSegment(last indexedFile, size int64) (*segment, error) {
	f, err := os.OpenFile(last.path, os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	return &segment{file: j.wrap(diskFile{f}), path: last.path, first: last.index, size: size}, nil
}

// append makes a group durable. Where it returns ErrRefused the segment is as it was
// before; with another error what it holds is not known.
func (s *segment) append(group []byte) error {
	_, err := s.file.Write(group)
	if err == nil {
		err = s.file.Sync()
	}
	if err == nil {
		s.size += int64(len(group))
		return nil
	}
	if undo := errors.Join(s.file.Truncate(s.size), s.file.Sync()); undo != nil {
		return fmt.Errorf("%w: %w; taking it back: %w", ErrBroken, err, undo)
	}
	return fmt.Errorf("%w: %w", ErrRefused, err)
}
