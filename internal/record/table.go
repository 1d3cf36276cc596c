package record

import (
	"errors"
	"fmt"
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
	rows, err = parquet.ReadFile[T](path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrDamaged, err)
	}
	return rows, nil
}
