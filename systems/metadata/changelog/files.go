package changelog

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/internal/base/atomicfile"
	"skerry/internal/base/flock"
)

const (
	version        = 1
	versionFile    = "version"
	lockFile       = "lock"
	segmentPrefix  = "log-"
	snapshotPrefix = "snapshot-"
	tempSuffix     = ".tmp"
)

type indexedFile struct {
	path  string
	index uint64
}

func segmentPath(dir string, first uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%s%016x", segmentPrefix, first))
}

func snapshotPath(dir string, index uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%s%016x", snapshotPrefix, index))
}

// listFiles returns the files with a prefix, sorted by index.
func listFiles(dir, prefix string) ([]indexedFile, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []indexedFile
	for _, e := range entries {
		digits, found := strings.CutPrefix(e.Name(), prefix)
		if !found {
			continue
		}
		if index, err := strconv.ParseUint(digits, 16, 64); err == nil {
			files = append(files, indexedFile{filepath.Join(dir, e.Name()), index})
		}
	}
	slices.SortFunc(files, func(a, b indexedFile) int { return cmp.Compare(a.index, b.index) })
	return files, nil
}

// lockDir creates the directory if missing, locks it for this process, checks its version, and removes unfinished
// snapshots.
func lockDir(dir string) (*flock.Lock, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	lock, err := flock.Acquire(f)
	if errors.Is(err, flock.ErrHeld) {
		err = advice.With(fmt.Errorf("%s: %w", dir, ErrInUse), "stop the other server, or give this server another --data directory")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := initDir(dir); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

func initDir(dir string) error {
	if err := checkVersion(dir); err != nil {
		return err
	}
	temporary, err := filepath.Glob(filepath.Join(dir, "*"+tempSuffix))
	if err != nil {
		return err
	}
	for _, path := range temporary {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

func checkVersion(dir string) error {
	path := filepath.Join(dir, versionFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return writeFile(path, fmt.Appendf(nil, "%d\n", version))
	}
	if err != nil {
		return err
	}
	v, err := strconv.Atoi(strings.TrimSpace(string(text)))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w: invalid version %.20q", path, ErrCorrupt, text)
	case v > version:
		return advice.With(fmt.Errorf("%s: %w: version %d, this program supports up to %d", path, ErrNewer, v, version),
			"use the version of skerry that wrote it, or a later one")
	}
	return nil
}

// writeFile creates a file atomically.
func writeFile(path string, content []byte) error {
	f, err := os.Create(path + tempSuffix)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path+tempSuffix))
	}
	return publishFile(path)
}

// publishFile durably renames a complete temporary file to its final name.
func publishFile(path string) error {
	if err := os.Rename(path+tempSuffix, path); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(path))
}

// file is the output of a segment; tests inject failing ones.
type file interface {
	Write(b []byte) (int, error)
	Sync() error // content and size, not times
	Truncate(size int64) error
	Close() error
}

type diskFile struct{ *os.File }

func (f diskFile) Sync() error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return err
		}
	}
}

// segment is the last file of the log, to which groups are appended.
type segment struct {
	file  file
	path  string
	first uint64 // index of the first record
	size  int64  // durable bytes
}

func (j *Journal) newSegment(first uint64) (*segment, error) {
	path := segmentPath(j.dir, first)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("creating a journal segment: %w", err)
	}
	if err := atomicfile.SyncDir(filepath.Dir(path)); err != nil {
		return nil, errors.Join(fmt.Errorf("creating a journal segment: %w", err), f.Close(), os.Remove(path))
	}
	return &segment{file: j.wrap(diskFile{f}), path: path, first: first}, nil
}

func (j *Journal) openSegment(last indexedFile, size int64) (*segment, error) {
	f, err := os.OpenFile(last.path, os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	return &segment{file: j.wrap(diskFile{f}), path: last.path, first: last.index, size: size}, nil
}

// append makes a group durable. After ErrRefused, the segment is unchanged. After any other error, its content is
// unknown.
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
		return fmt.Errorf("%w: %w; undoing the write: %w", ErrBroken, err, undo)
	}
	return fmt.Errorf("%w: %w", ErrRefused, err)
}
