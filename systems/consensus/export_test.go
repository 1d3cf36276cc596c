package consensus

import "skerry/systems/consensus/wal"

// FramePing begins the frame of a heartbeat.
const FramePing = byte(framePing)

// WithFS makes a node keep its log elsewhere.
func (c Config) WithFS(fs func(dir string) (wal.FS, error)) Config {
	c.fs = fs
	return c
}

// BeginNameless makes a log as versions did that gave logs no names.
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
