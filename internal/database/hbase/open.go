package hbase

import (
	"context"
	"errors"
	"fmt"

	"skerry/internal/load"
	"skerry/internal/machine/files"
)

// shared is a bridge in use.
type shared struct {
	users int
	ready chan struct{} // closed when bridge or err is set
	*bridge
	err error
}

// Properties implements database.Configurable.
func (*HBase) Properties() []string { return Properties() }

// Open implements database.Database: workers with the same properties share a bridge.
func (d *HBase) Open(ctx context.Context, properties map[string]string) (load.Client, error) {
	s, err := parseSettings(properties)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	sh := d.bridges[s]
	first := sh == nil
	if first {
		sh = &shared{ready: make(chan struct{})}
		d.bridges[s] = sh
	}
	sh.users++
	d.mu.Unlock()
	if first {
		sh.bridge, sh.err = d.connect(ctx, s)
		close(sh.ready)
	}
	select {
	case <-sh.ready:
	case <-ctx.Done():
		return nil, errors.Join(fmt.Errorf("opening a client of hbase: %w", ctx.Err()), d.release(s, sh, false))
	}
	if sh.err != nil {
		return nil, errors.Join(fmt.Errorf("opening a client of hbase: %w", sh.err), d.release(s, sh, true))
	}
	return &client{bridge: sh.bridge, slot: sh.open(), timeout: s.timeout, release: func() error { return d.release(s, sh, false) }}, nil
}

// connect connects to the standing bridge, where there is one with the same settings, or
// starts one.
func (d *HBase) connect(ctx context.Context, s settings) (*bridge, error) {
	if s.standing != "" && s.plain() {
		b, err := dialBridge(ctx, s.standing)
		if err == nil {
			if err = b.warm(ctx); err == nil {
				return b, nil
			}
			_ = b.Close() // it has ended
		}
		if ctx.Err() != nil {
			return nil, err
		}
	}
	if s.java == "" || s.classpath == "" {
		in, err := d.Find("")
		if err != nil {
			return nil, err
		}
		jar, err := here.bridgeClasses(ctx, in.Programs["java"], in.Dir, "")
		if err != nil {
			return nil, err
		}
		s.java, s.classpath = in.Programs["java"], classpath(jar, in.Dir)
	}
	b, err := bridgeHere(s.command(ctx, files.Local{}))
	if err != nil {
		return nil, err
	}
	if err := b.warm(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// release gives a bridge back; the last user ends it. One that failed is not given to
// anybody else.
func (d *HBase) release(s settings, sh *shared, failed bool) error {
	d.mu.Lock()
	sh.users--
	last := sh.users == 0
	if (last || failed) && d.bridges[s] == sh {
		delete(d.bridges, s)
	}
	d.mu.Unlock()
	// A user that did not wait for the bridge is not the last: its maker still is one.
	if !last || sh.bridge == nil {
		return nil
	}
	return sh.Close()
}
