package consensus

import "skerry/internal/consensus/wal"

// WithFS makes a node keep its log elsewhere.
func (c Config) WithFS(fs func(dir string) (wal.FS, error)) Config {
	c.fs = fs
	return c
}
