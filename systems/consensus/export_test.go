package consensus

import "skerry/systems/consensus/wal"

// FramePing is the first byte of a heartbeat frame.
const FramePing = byte(framePing)

// WithFS stores a node's log in another file system.
func (c Config) WithFS(fs func(dir string) (wal.FS, error)) Config {
	c.fs = fs
	return c
}

// BeginNameless creates a log without an identity, as earlier versions did.
func BeginNameless(cfg Config) error {
	if err := cfg.check(); err != nil {
		return err
	}
	first, err := firstConf(cfg.Members)
	if err != nil {
		return err
	}
	first.Born = false
	return createLog(cfg, first)
}
