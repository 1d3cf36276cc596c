package changelog

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/base/atomicfile"
)

const snapshotPrefix = "snapshot-"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// blockSize is the maximum size of a snapshot block, which has one checksum.
const blockSize = 256 << 10

// A snapshot file is a sequence of blocks, each preceded by its checksum (4 bytes) and length (4 bytes). The last block
// is empty, so that a truncated file is detected. The first block is the index (8 bytes).

type blockWriter struct {
	w    *bufio.Writer
	held []byte
	size int64
}

func (b *blockWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		take := min(len(p), blockSize-len(b.held))
		b.held = append(b.held, p[:take]...)
		p = p[take:]
		if len(b.held) == blockSize {
			if err := b.flush(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

func (b *blockWriter) flush() error {
	err := b.writeBlock(b.held)
	b.held = b.held[:0]
	return err
}

func (b *blockWriter) writeBlock(p []byte) error {
	var header [8]byte
	binary.LittleEndian.PutUint32(header[4:], uint32(len(p)))
	sum := crc32.Update(crc32.Checksum(header[4:], castagnoli), castagnoli, p)
	binary.LittleEndian.PutUint32(header[:], sum)
	b.size += int64(len(header) + len(p))
	if _, err := b.w.Write(header[:]); err != nil {
		return err
	}
	_, err := b.w.Write(p)
	return err
}

func (b *blockWriter) finish() error {
	if len(b.held) > 0 {
		if err := b.flush(); err != nil {
			return err
		}
	}
	return errors.Join(b.writeBlock(nil), b.w.Flush())
}

// blockReader reads blockWriter's output. It returns io.EOF only after the last block.
type blockReader struct {
	r     *bufio.Reader
	block []byte
	rest  []byte
	ended bool
}

func (b *blockReader) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		if b.ended {
			return 0, io.EOF
		}
		if err := b.readBlock(); err != nil {
			return 0, err
		}
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

func (b *blockReader) readBlock() error {
	var header [8]byte
	if _, err := io.ReadFull(b.r, header[:]); err != nil {
		return fmt.Errorf("%w: snapshot is truncated: %w", ErrCorrupt, err)
	}
	n := binary.LittleEndian.Uint32(header[4:])
	if n > blockSize {
		return fmt.Errorf("%w: snapshot block of %d bytes", ErrCorrupt, n)
	}
	if b.block == nil {
		b.block = make([]byte, blockSize)
	}
	b.rest = b.block[:n]
	if _, err := io.ReadFull(b.r, b.rest); err != nil {
		return fmt.Errorf("%w: snapshot is truncated: %w", ErrCorrupt, err)
	}
	if crc32.Update(crc32.Checksum(header[4:], castagnoli), castagnoli, b.rest) != binary.LittleEndian.Uint32(header[:]) {
		return fmt.Errorf("%w: snapshot checksum mismatch", ErrCorrupt)
	}
	b.ended = n == 0
	return nil
}

// SaveSnapshot durably saves the output of write as the state after record index, and deletes older snapshots. It returns
// the size in bytes. Logs that store their records elsewhere use SaveSnapshot and LoadSnapshot with a directory of their
// own.
func SaveSnapshot(dir string, index uint64, write func(io.Writer) error) (size int64, err error) {
	path := filepath.Join(dir, fmt.Sprintf("%s%016x", snapshotPrefix, index))
	err = atomicfile.Write(path, func(f io.Writer) error {
		w := &blockWriter{w: bufio.NewWriterSize(f, 1<<20)}
		if err := w.writeBlock(binary.LittleEndian.AppendUint64(nil, index)); err != nil {
			return err
		}
		if err := write(w); err != nil {
			return err
		}
		err := w.finish()
		size = w.size
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("writing a snapshot: %w", err)
	}
	snapshots, err := listSnapshots(dir)
	for _, s := range snapshots {
		if s.index < index {
			err = errors.Join(err, os.Remove(s.path))
		}
	}
	return size, err
}

// LoadSnapshot passes the last snapshot of a directory to restore, and returns its index and size, or 0 if there is none.
// restore must read to the end. LoadSnapshot deletes the unfinished snapshots that a crash left.
func LoadSnapshot(dir string, restore func(io.Reader) error) (index uint64, size int64, err error) {
	unfinished, err := filepath.Glob(filepath.Join(dir, "."+snapshotPrefix+"*"))
	for _, path := range unfinished {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		return 0, 0, err
	}
	snapshots, err := listSnapshots(dir)
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
		return 0, 0, corruptError(last.path, fmt.Errorf("%w: file name does not match the index", ErrCorrupt))
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

type indexedFile struct {
	path  string
	index uint64
}

func listSnapshots(dir string) ([]indexedFile, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []indexedFile
	for _, e := range entries {
		digits, found := strings.CutPrefix(e.Name(), snapshotPrefix)
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
