package wal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"skerry/internal/base/flock"
)

// FS is the directory of a log: a directory of the operating system, or a test double that loses unsynced data.
type FS interface {
	// Create makes an empty file, replacing one of the name.
	Create(name string) (File, error)
	Open(name string) (File, error)
	// List returns the names of all files in order.
	List() ([]string, error)
	Remove(name string) error
	Sync() error
	Close() error
}

// File is one file of a log.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Allocate reserves space, reading as zeros, where the file system can.
	Allocate(size int64) error
	Truncate(size int64) error
	Size() (int64, error)
	Sync() error
}

type directory struct {
	path string
	lock *flock.Lock
}

// Directory makes the directory if need be and locks it against other processes until Close.
func Directory(path string) (FS, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("creating the log's directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(path, "LOCK"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	lock, err := flock.Acquire(f)
	if errors.Is(err, flock.ErrHeld) {
		err = ErrLocked
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), f.Close())
	}
	return &directory{path: path, lock: lock}, nil
}

func (d *directory) Create(name string) (File, error) {
	f, err := os.OpenFile(filepath.Join(d.path, name), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return file{f}, nil
}

func (d *directory) Open(name string) (File, error) {
	f, err := os.OpenFile(filepath.Join(d.path, name), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return file{f}, nil
}

func (d *directory) List() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

func (d *directory) Remove(name string) error { return os.Remove(filepath.Join(d.path, name)) }

func (d *directory) Sync() error {
	f, err := os.Open(d.path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

func (d *directory) Close() error { return d.lock.Close() }

type file struct{ *os.File }

func (f file) Allocate(size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return err
}

func (f file) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Sync leaves out times of access: what is needed to read the data back is synced.
func (f file) Sync() error { return unix.Fdatasync(int(f.Fd())) }
