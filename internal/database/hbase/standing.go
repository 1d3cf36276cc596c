package hbase

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"skerry/internal/machine/host"
)

// portBridge is where the standing bridge takes connections, on the client's node.
const portBridge = 16040

// sharedBridge is a bridge on the client's node that outlives the drivers: once a cluster is used
// again, its clients need not start a JVM for every load and every measurement, and find one
// whose code is compiled.
//
//	driver ─► bridge ══ connection ══► Java on the same node ─► region servers
//
// Each driver has a connection of its own, and with it new ones to the servers: those made
// while the links were set up for loading know nothing of the distances of the measurement
// (CUBIC leaves slow start at once where round trips are longer than ever before).
type sharedBridge struct {
	*bridge
	addr string
}

// ensureSharedBridge has a standing bridge run. That there is none is told to the log: clients start
// bridges of their own then.
func (c *cluster) ensureSharedBridge(ctx context.Context) {
	if c.Env.Control == nil || c.sharedBridgeAddr() != "" {
		return
	}
	if c.sharedBridge != nil {
		_ = c.sharedBridge.Close() // it has ended: its clients were told how
	}
	s, err := c.startSharedBridge(ctx)
	if err != nil {
		c.Log.Info("keeping a client of HBase", "error", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sharedBridge = s
}

func (c *cluster) startSharedBridge(ctx context.Context) (*sharedBridge, error) {
	s, err := parseSettings(c.Properties())
	if err != nil {
		return nil, err
	}
	h := c.Env.Control
	addr := net.JoinHostPort(host.Listen(h), strconv.Itoa(portBridge))
	run := s.bridgeCommand(ctx, h.Files(), property{"bridge.listen", addr})
	b, err := startBridgeOn(ctx, h, run, h.Dir(), filepath.Join(h.Dir(), "bridge.log"), endPolicy{bridgeGrace, func() {}})
	if err != nil {
		return nil, err
	}
	if err := b.warmUp(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return &sharedBridge{b, addr}, nil
}

// sharedBridgeAddr is the address of the standing bridge; none when there is none, or it has ended.
func (c *cluster) sharedBridgeAddr() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sharedBridge == nil {
		return ""
	}
	select {
	case <-c.sharedBridge.done:
		return ""
	default:
		return c.sharedBridge.addr
	}
}

// dialBridge connects to the standing bridge.
func dialBridge(ctx context.Context, addr string) (*bridge, error) {
	d := net.Dialer{Timeout: dialTimeout}
	conn, err := d.DialContext(ctx, "tcp4", addr)
	if err != nil {
		return nil, fmt.Errorf("connecting to the bridge: %w", err)
	}
	return newBridge(conn, conn, conn.Close), nil
}

// warmUp has the bridge find all regions and do one operation, so that no worker's first one
// waits for the JVM, the connection and the places of regions. An error says that the bridge
// or the time has ended: what else fails for now, the workers' operations will tell.
func (b *bridge) warmUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, warmTimeout)
	defer cancel()
	c := &client{bridge: b, slot: b.acquireSlot(), timeout: warmTimeout}
	defer b.releaseSlot(c.slot)
	_, _ = admin{b}.query(ctx, "places", table)
	if _, err := c.Read(ctx, table, "user", nil, nil); errors.Is(err, errBridge) || ctx.Err() != nil {
		return err
	}
	return nil
}

// warmTimeout bounds the first operation, for which a JVM starts.
const warmTimeout = 60 * time.Second
