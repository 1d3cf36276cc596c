package consensus

import "skerry/systems/consensus/wal"

// FramePing is the first byte of a heartbeat frame.
const FramePing = byte(framePing)

// WithFS stores a node's log in another file system.
func (c Config) WithFS(fs func(dir string) (wal.FS, error)) Config {
	c.fs = fs
	return c
}
