package consensus

import "skerry/systems/consensus/wal"

// FramePing begins the frame of a heartbeat.
const FramePing = byte(framePing)

// WithFS makes a node keep its log elsewhere.
func (c Config) WithFS(fs func(dir string) (wal.FS, error)) Config {
	c.fs = fs
	return c
}
