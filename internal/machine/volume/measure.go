package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Effort is how much is written to measure a volume.
type Effort struct {
	// Syncs is how many writes are forced to the disk, one after the other.
	Syncs int
	// Bytes are written in sequence.
	Bytes int64
}

// Speed is what a volume was measured to do.
type Speed struct {
	// SyncP50 and SyncP99 are how long it takes until 4 KiB added to a file are on the disk
	// (write and fdatasync), as a database's log does.
	SyncP50 time.Duration
	SyncP99 time.Duration
	// Write and Read are bytes a second in sequence, 1 MiB at a time: written with one fsync
	// at the end, and read again after the page cache was asked to forget the file.
	Write float64
	Read  float64
}

const (
	page  = 4 << 10
	chunk = 1 << 20
)

// Measure measures what a directory is on, with files of its own there.
func Measure(ctx context.Context, dir string, e Effort) (s Speed, err error) {
	path := filepath.Join(dir, "skerry-volume")
	defer func() { err = errors.Join(err, os.Remove(path)) }()
	if err := s.syncs(ctx, path, e.Syncs); err != nil {
		return s, fmt.Errorf("measure fsync on %s: %w", dir, err)
	}
	if err := s.sequence(ctx, path, e.Bytes); err != nil {
		return s, fmt.Errorf("measure throughput on %s: %w", dir, err)
	}
	return s, nil
}

func (s *Speed) syncs(ctx context.Context, path string, n int) (err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	took := make([]time.Duration, 0, n)
	data := pattern(page)
	for range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		began := time.Now()
		if _, err := file.Write(data); err != nil {
			return err
		}
		if err := unix.Fdatasync(int(file.Fd())); err != nil {
			return err
		}
		took = append(took, time.Since(began))
	}
	if n > 0 {
		slices.Sort(took)
		s.SyncP50, s.SyncP99 = took[n/2], took[min(n-1, n*99/100)]
	}
	return nil
}

func (s *Speed) sequence(ctx context.Context, path string, bytes int64) (err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	data := pattern(chunk)
	pass := func(f func([]byte, int64) (int, error)) (float64, error) {
		began := time.Now()
		for at := int64(0); at < bytes; at += chunk {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			if _, err := f(data, at); err != nil {
				return 0, err
			}
		}
		err := file.Sync()
		return float64((bytes+chunk-1)/chunk*chunk) / time.Since(began).Seconds(), err
	}
	if s.Write, err = pass(file.WriteAt); err != nil {
		return err
	}
	if err := unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return err
	}
	s.Read, err = pass(file.ReadAt)
	return err
}

// pattern is data that no disk or file system makes smaller.
func pattern(n int) []byte {
	data := make([]byte, n)
	x := uint64(0x9E3779B97F4A7C15)
	for i := range data {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		data[i] = byte(x)
	}
	return data
}
