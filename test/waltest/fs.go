// Package waltest is an in-memory directory for a log. A simulated crash loses unsynced changes: whole
// writes, parts of writes, creations and removals, drawn from a random source.
package waltest

import (
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"syscall"

	"skerry/systems/consensus/wal"
)

// sector is the size in bytes that a disk writes atomically.
const sector = 512

// FS is the directory. It is not safe for concurrent use, except by concurrent readers without a writer.
type FS struct {
	rng     *rand.Rand
	files   map[string]*file // as the running process sees them
	durable map[string]*file // names that survive a crash

	// Capacity is the maximum total size of all files in bytes; 0: no limit.
	Capacity int64
	// Lies makes syncs report success without effect.
	Lies bool
	// SyncError, if set, is returned by syncs of files.
	SyncError error
	Syncs     int
}

type file struct {
	fs      *FS
	durable []byte
	now     []byte
	pending []write
}

// write is an unsynced write; at < 0 means a truncation to size.
type write struct {
	at   int64
	data []byte
	size int64
}

// New returns an empty directory whose crashes are drawn from rng.
func New(rng *rand.Rand) *FS {
	return &FS{rng: rng, files: map[string]*file{}, durable: map[string]*file{}}
}

func (d *FS) Create(name string) (wal.File, error) {
	f := &file{fs: d}
	d.files[name] = f
	return handle{f}, nil
}

func (d *FS) Open(name string) (wal.File, error) {
	f, ok := d.files[name]
	if !ok {
		return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
	}
	return handle{f}, nil
}

func (d *FS) List() ([]string, error) {
	var names []string
	for name := range d.files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

func (d *FS) Remove(name string) error {
	delete(d.files, name)
	return nil
}

func (d *FS) Sync() error {
	if d.Lies {
		return nil
	}
	clear(d.durable)
	for name, f := range d.files {
		d.durable[name] = f
	}
	return nil
}

func (d *FS) Close() error { return nil }

// Bytes returns the total size of all files.
func (d *FS) Bytes() int64 {
	total := int64(0)
	for _, f := range d.files {
		total += int64(len(f.now))
	}
	return total
}

// Crash leaves the directory as a machine finds it after a power failure. Open files must not be used any more.
func (d *FS) Crash() {
	names := map[string]*file{}
	all, _ := d.List()
	for name := range d.durable {
		if _, ok := d.files[name]; !ok {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	for _, name := range all {
		f, now := d.files[name]
		was, before := d.durable[name]
		switch {
		case now && before && f == was:
			names[name] = f
		case d.rng.IntN(2) == 0: // the directory change reached the disk
			if now {
				names[name] = f
			}
		case before:
			names[name] = was
		}
	}
	d.files = map[string]*file{}
	d.durable = map[string]*file{}
	for _, name := range all {
		f, ok := names[name]
		if !ok {
			continue
		}
		n := &file{fs: d, now: f.afterCrash(d.rng)}
		n.durable = slices.Clone(n.now)
		d.files[name], d.durable[name] = n, n
	}
}

// afterCrash returns the durable content plus a random part of the pending writes.
func (f *file) afterCrash(rng *rand.Rand) []byte {
	out := slices.Clone(f.durable)
	for _, w := range f.pending {
		switch rng.IntN(3) {
		case 0: // all of it
			out = w.apply(out)
		case 1: // some sectors
			if w.at < 0 {
				continue
			}
			for at := int64(0); at < int64(len(w.data)); {
				end := min(at+sector-(w.at+at)%sector, int64(len(w.data)))
				if rng.IntN(2) == 0 {
					out = write{at: w.at + at, data: w.data[at:end]}.apply(out)
				}
				at = end
			}
		}
	}
	return out
}

func (w write) apply(b []byte) []byte {
	if w.at < 0 {
		if int64(len(b)) > w.size {
			return b[:w.size:w.size]
		}
		return append(b, make([]byte, w.size-int64(len(b)))...)
	}
	if end := w.at + int64(len(w.data)); end > int64(len(b)) {
		b = append(b, make([]byte, end-int64(len(b)))...)
	}
	copy(b[w.at:], w.data)
	return b
}

type handle struct{ *file }

func (f handle) ReadAt(p []byte, at int64) (int, error) {
	if at >= int64(len(f.now)) {
		return 0, io.EOF
	}
	n := copy(p, f.now[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f handle) WriteAt(p []byte, at int64) (int, error) {
	grown := at + int64(len(p)) - int64(len(f.now))
	if c := f.fs.Capacity; c > 0 && grown > 0 && f.fs.Bytes()+grown > c {
		return 0, fmt.Errorf("write: %w", syscall.ENOSPC)
	}
	w := write{at: at, data: slices.Clone(p)}
	f.now = w.apply(f.now)
	f.pending = append(f.pending, w)
	return len(p), nil
}

func (f handle) Truncate(size int64) error {
	w := write{at: -1, size: size}
	f.now = w.apply(f.now)
	f.pending = append(f.pending, w)
	return nil
}

// Allocate extends the file by zeros. A crash may leave any part of them, like a truncation.
func (f handle) Allocate(size int64) error {
	grown := size - int64(len(f.now))
	if grown <= 0 {
		return nil
	}
	if c := f.fs.Capacity; c > 0 && f.fs.Bytes()+grown > c {
		return fmt.Errorf("fallocate: %w", syscall.ENOSPC)
	}
	return f.Truncate(size)
}

func (f handle) Size() (int64, error) { return int64(len(f.now)), nil }

func (f handle) Sync() error {
	f.fs.Syncs++
	if f.fs.SyncError != nil {
		return f.fs.SyncError
	}
	if f.fs.Lies {
		return nil
	}
	for _, w := range f.pending {
		f.durable = w.apply(f.durable)
	}
	f.pending = nil
	return nil
}

func (f handle) Close() error { return nil }
