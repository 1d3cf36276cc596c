package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/lab/overlay"
)

// overlayNet is the lab as its overlay sees it: tunnels in place of links that have one.
func (l *Lab) overlayNet() overlay.Net {
	n := overlay.Net{Nodes: l.Hosts(), On: l.part, Measure: l.part, Log: l.log}
	near := l.Factor() == 0
	for i, k := range l.Links() {
		latency := k.RTT() / 2
		if near && !k.Real {
			latency = (k.BaseAB.Latency + k.BaseBA.Latency) / 2
		}
		device := k.Device
		a, b := endAddresses(linkNet, i)
		if k.Tunnel != "" {
			device = k.Tunnel
			a, b = endAddresses(tunnelNet, i)
		}
		n.Links = append(n.Links, overlay.Link{ID: k.ID, A: k.A, B: k.B, Device: device, Latency: latency, AddrA: a, AddrB: b})
	}
	return n
}

// startOverlay starts the daemons that route.
func (l *Lab) startOverlay(ctx context.Context, c Config) (err error) {
	if c.Overlay == nil {
		return nil
	}
	c.Progress("routes", 0, len(l.nodes))
	l.overlay, err = c.Overlay.Start(ctx, l.overlayNet())
	return err
}

// Trace returns the links that packets take from one node to another at this moment, with
// the latency that they add up to.
func (l *Lab) Trace(ctx context.Context, from, to string) (overlay.Path, error) {
	for _, name := range []string{from, to} {
		if _, err := l.Host(name); err != nil {
			return overlay.Path{}, err
		}
	}
	ids, err := overlay.NewTracer(l.overlayNet()).Trace(ctx, from, to)
	if err != nil {
		return overlay.Path{}, err
	}
	p := overlay.Path{Links: ids}
	at := from
	for _, id := range ids {
		for _, k := range l.Links() {
			switch {
			case k.ID == id && k.A == at:
				p.Latency, at = p.Latency+k.AB.Latency+k.Way, k.B
			case k.ID == id && k.B == at:
				p.Latency, at = p.Latency+k.BA.Latency+k.Way, k.A
			default:
				continue
			}
			break
		}
	}
	return p, nil
}

const (
	// quietRoutes is how long no way must have changed for routes to count as settled,
	// settleTimeout bounds the wait: with links that come and go they never are.
	quietRoutes   = 1500 * time.Millisecond
	settleTimeout = 15 * time.Second
	settlePoll    = 250 * time.Millisecond
)

// Settle waits until the routes between nodes have not changed for a while. It looks at
// the kernel's; what tinc does inside itself is not seen.
func (l *Lab) Settle(ctx context.Context) error {
	if !l.state.Topology.Overlay.Routed() {
		return nil
	}
	tracer := overlay.NewTracer(l.overlayNet())
	began := time.Now()
	last, changed := "", began
	for time.Since(began) < settleTimeout {
		var ways strings.Builder
		for _, a := range l.nodes {
			for _, b := range l.nodes {
				ids, err := tracer.Trace(ctx, a.Name(), b.Name())
				if err != nil && !errors.Is(err, overlay.ErrNoRoute) {
					return err
				}
				fmt.Fprintln(&ways, ids)
			}
		}
		if ways.String() != last {
			last, changed = ways.String(), time.Now()
		}
		if time.Since(changed) >= quietRoutes {
			return nil
		}
		if err := linger.For(ctx, settlePoll); err != nil {
			return err
		}
	}
	return nil
}

// OverlayRestarts is how many routing daemons ended by themselves and were started again
// by this process.
func (l *Lab) OverlayRestarts() int {
	if l.overlay == nil {
		return 0
	}
	return l.overlay.Restarts()
}

// closeOverlay stops looking after the daemons, which end with their nodes.
func (l *Lab) closeOverlay() error {
	if l.overlay == nil {
		return nil
	}
	running := l.overlay
	l.overlay = nil
	return running.Close()
}
