package hbase

import (
	"context"
	"errors"
	"fmt"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/internal/machine/files"
)

// Properties implements database.Configurable.
func (*HBase) Properties() []string { return Properties() }

// Open implements database.Database: workers with the same properties share a bridge.
func (d *HBase) Open(ctx context.Context, properties map[string]string) (load.Client, error) {
	s, err := parseSettings(properties)
	if err != nil {
		return nil, err
	}
	bridge, release, err := d.bridges.Acquire(ctx, s, database.ClientSource[*bridge]{
		Open:  func(ctx context.Context) (*bridge, error) { return d.connect(ctx, s) },
		Close: (*bridge).Close,
	})
	if err != nil {
		return nil, fmt.Errorf("opening a client of hbase: %w", err)
	}
	return &client{bridge: bridge, slot: bridge.acquireSlot(), timeout: s.timeout, release: release}, nil
}

// connect connects to the standing bridge, where there is one with the same settings, or
// starts one.
func (d *HBase) connect(ctx context.Context, s settings) (*bridge, error) {
	if s.bridgeAddr != "" && s.isDefault() {
		b, err := dialBridge(ctx, s.bridgeAddr)
		if err == nil {
			if err = b.warmUp(ctx); err == nil {
				return b, nil
			}
			_ = b.Close() // it has ended
		}
		if ctx.Err() != nil {
			return nil, err
		}
	}
	if s.java == "" || s.classpath == "" {
		in, err := d.Find("", "")
		if err != nil {
			return nil, err
		}
		jar, err := localBuildHost.bridgeClasses(ctx, in.Programs["java"], in.Dir, "")
		if err != nil {
			return nil, err
		}
		s.java, s.classpath = in.Programs["java"], classpath(jar, in.Dir)
	}
	b, err := startLocalBridge(s.bridgeCommand(ctx, files.Local{}))
	if err != nil {
		return nil, err
	}
	if err := b.warmUp(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}
