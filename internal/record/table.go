package record

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// rowGroup is how many rows are held in memory before they go to the disk: half a
// minute of a thousand nodes, hours of eight.
const rowGroup = 32 << 10

// errClosed answers rows that come after the end of a trial.
var errClosed = errors.New("the trial has ended")

// table is a parquet file that is being written, compressed with zstd.
type table[T any] struct {
	file *os.File
	rows *parquet.GenericWriter[T]
}

func newTable[T any](path string) (*table[T], error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &table[T]{f, parquet.NewGenericWriter[T](f,
		parquet.Compression(&zstd.Codec{Level: zstd.SpeedDefault, Concurrency: 1}),
		parquet.MaxRowsPerRowGroup(rowGroup),
		parquet.CreatedBy("skerry", "", ""))}, nil
}

func (t *table[T]) add(rows ...T) error {
	if t == nil {
		return errClosed
	}
	_, err := t.rows.Write(rows)
	return err
}

func (t *table[T]) close() error {
	return errors.Join(t.rows.Close(), t.file.Sync(), t.file.Close())
}

// readTable reads a whole parquet file. The library trusts much of what a file says
// and panics on some lies; those are damage as any other.
func readTable[T any](path string) (rows []T, err error) {
	defer func() {
		if p := recover(); p != nil {
			rows, err = nil, fmt.Errorf("%s: %w: %v", path, ErrDamaged, p)
		}
	}()
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if rows, err = readRows[T](f, st.Size()); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrDamaged, err)
	}
	return rows, nil
}

// readRows reads in chunks, so that a number of rows that a file claims and does not
// have costs no memory.
func readRows[T any](f io.ReaderAt, size int64) (rows []T, err error) {
	file, err := parquet.OpenFile(f, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	r := parquet.NewGenericReader[T](file)
	defer func() { err = errors.Join(err, r.Close()) }()
	chunk := make([]T, 1024)
	for {
		n, err := r.Read(chunk)
		rows = append(rows, chunk[:n]...)
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, io.ErrNoProgress
		}
	}
}
