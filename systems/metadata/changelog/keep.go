package changelog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// SaveSnapshot keeps what write writes as the state after record index, durably, in place
// of the snapshots before it, and returns its size in bytes. Logs that keep their records
// elsewhere use it with LoadSnapshot; the directory is theirs alone.
func SaveSnapshot(dir string, index uint64, write func(io.Writer) error) (size int64, err error) {
	if size, err = writeSnapshot(dir, index, write); err != nil {
		return 0, err
	}
	return size, removeSnapshots(dir, index)
}

// LoadSnapshot lets restore read the last snapshot of a directory, and returns its index
// and size; 0 where there is none. restore must read to the end.
func LoadSnapshot(dir string, restore func(io.Reader) error) (index uint64, size int64, err error) {
	snapshots, err := listFiles(dir, snapshotPrefix)
	if err != nil || len(snapshots) == 0 {
		return 0, 0, err
	}
	last := snapshots[len(snapshots)-1]
	f, err := os.Open(last.path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	b := &blockReader{r: bufio.NewReaderSize(f, 1<<20)}
	var first [8]byte
	if _, err := io.ReadFull(b, first[:]); err != nil {
		return 0, 0, corruptError(last.path, err)
	}
	if binary.LittleEndian.Uint64(first[:]) != last.index {
		return 0, 0, corruptError(last.path, fmt.Errorf("%w: its name is not its index", ErrCorrupt))
	}
	if err := restore(b); err != nil {
		return 0, 0, corruptError(last.path, err)
	}
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	return last.index, info.Size(), nil
}

func writeSnapshot(dir string, index uint64, write func(io.Writer) error) (size int64, err error) {
	path := snapshotPath(dir, index)
	f, err := os.Create(path + tempSuffix)
	if err != nil {
		return 0, err
	}
	w := &blockWriter{w: bufio.NewWriterSize(f, 1<<20)}
	err = w.writeBlock(binary.LittleEndian.AppendUint64(nil, index))
	if err == nil {
		err = write(w)
	}
	if err == nil {
		err = w.finish()
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, errors.Join(fmt.Errorf("writing a snapshot: %w", err), os.Remove(path+tempSuffix))
	}
	return w.size, publishFile(path)
}

// removeSnapshots deletes the snapshots before that of index.
func removeSnapshots(dir string, index uint64) error {
	snapshots, err := listFiles(dir, snapshotPrefix)
	for _, s := range snapshots {
		if s.index < index {
			err = errors.Join(err, os.Remove(s.path))
		}
	}
	return err
}
