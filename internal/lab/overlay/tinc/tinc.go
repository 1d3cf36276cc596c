// Package tinc routes with tinc 1.0, a mesh VPN: every node connects to every neighbour, over the first of its
// addresses that answers, and packets use the path with the fewest connections. Tinc ignores latencies once connected,
// and detects a dead link by an unanswered ping.
package tinc

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/install"
	"skerry/internal/lab/overlay"
	"skerry/internal/machine"
	"skerry/internal/machine/host"
)

// Name is the overlay's name in topologies.
const Name = "tinc"

// Recipe installs Debian's tinc.
var Recipe = install.Recipe{
	Name:        "tinc",
	Summary:     "tinc 1.0, which routes for overlay: tinc",
	Wanted:      install.ByTests,
	Packages:    []string{"tinc", "liblzo2-2", "libssl3"},
	Programs:    []string{"tincd"},
	VersionArgs: []string{"--version"},
	// "tinc version 1.0.36".
	Version: install.MatchVersion(`tinc version ([0-9][^ \n]*)`),
}

const (
	keyBits = 2048
	port    = 655
	// listenTimeout bounds the time for a daemon to listen.
	listenTimeout = 10 * time.Second
	// readyTimeout bounds the time for the initial connections.
	readyTimeout = 60 * time.Second
)

type Tinc struct {
	program string
	env     []string
	options Options
}

var _ overlay.Overlay = (*Tinc)(nil)

func (*Tinc) Name() string { return Name }

func (*Tinc) Needs() overlay.Requirements { return overlay.Requirements{} }

func (t *Tinc) Start(ctx context.Context, n overlay.Environment) (overlay.Running, error) {
	r := &running{Supervisor: overlay.NewSupervisor(n.Log), nodes: n.Nodes, measure: n.Measure}
	err := t.start(ctx, r.Supervisor, n)
	if err == nil {
		ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not connected after %v", readyTimeout))
		defer cancel()
		err = overlay.WaitUntil(ctx, r.Ready)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start tinc: %w%s", err, r.LastLog()), r.Close())
	}
	return r, nil
}

func (t *Tinc) start(ctx context.Context, k *overlay.Supervisor, n overlay.Environment) error {
	peers, err := newPeers(n.Nodes)
	if err != nil {
		return err
	}
	// Start one by one: each daemon calls the earlier ones, and would use a longer link to one that
	// does not answer yet.
	for i, h := range n.Nodes {
		dir := filepath.Join(h.Dir(), "tinc")
		if err := writeConfig(ctx, h.Files(), dir, i, peers, n.Links, t.options); err != nil {
			return fmt.Errorf("configure tinc on %s: %w", h.Name(), err)
		}
		if err := makeDevice(ctx, n, h.Name()); err != nil {
			return err
		}
		err := k.Start(ctx, h, host.Command{
			Name: "tincd", Path: t.program, Env: t.env, Dir: dir, Log: filepath.Join(dir, "tincd.log"),
			Args: []string{"--config=" + dir, "--no-detach", "--pidfile=" + filepath.Join(dir, "pid"), "--debug=1"},
		})
		if err != nil {
			return err
		}
		if err := waitListening(ctx, h); err != nil {
			return fmt.Errorf("tincd on %s: %w", h.Name(), err)
		}
	}
	return nil
}

// waitListening waits until tincd accepts connections.
func waitListening(ctx context.Context, h host.Host) error {
	ctx, cancel := context.WithTimeoutCause(ctx, listenTimeout, fmt.Errorf("not listening after %v", listenTimeout))
	defer cancel()
	return overlay.WaitUntil(ctx, func(ctx context.Context) error {
		return host.CheckAccepts(ctx, h, fmt.Sprintf("127.0.0.1:%d", port), listenTimeout)
	})
}

// newPeers names the nodes for tinc and creates their keys.
func newPeers(nodes []host.Host) ([]peer, error) {
	peers := make([]peer, len(nodes))
	var g errgroup.Group
	for i, h := range nodes {
		g.Go(func() error {
			key, err := rsa.GenerateKey(rand.Reader, keyBits)
			peers[i] = peer{name: fmt.Sprintf("n%d", i), node: h.Name(), addr: h.Addr(), key: key}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("create keys: %w", err)
	}
	return peers, nil
}

// UpdateLatencies does nothing: tinc ignores latencies once it is connected.
func (*running) UpdateLatencies(context.Context, []overlay.Link) error { return nil }

type running struct {
	*overlay.Supervisor
	nodes   []host.Host
	measure machine.Measurer
}

// Ready sends packets, since the kernel's routes do not show tinc's connections.
func (r *running) Ready(ctx context.Context) error {
	e := machine.RTTSpec{Count: 1}
	var names []string
	for _, a := range r.nodes {
		for _, b := range r.nodes {
			if a == b {
				continue
			}
			to, err := netip.ParseAddr(b.Addr())
			if err != nil {
				return fmt.Errorf("address of %s: %w", b.Name(), err)
			}
			e.Paths = append(e.Paths, machine.Path{Node: a.Name(), To: to})
			names = append(names, fmt.Sprintf("from %s to %s", a.Name(), b.Name()))
		}
	}
	results, err := r.measure.MeasureRTT(ctx, e)
	if err != nil {
		return err
	}
	for i, p := range results {
		if p.Lost > 0 {
			return fmt.Errorf("%w %s", overlay.ErrNoRoute, names[i])
		}
	}
	return nil
}

// Definition registers tinc.
var Definition = overlay.Definition{
	Name: Name, Recipe: Recipe, Options: func() overlay.Options { return new(Options) },
	Docs: overlay.Docs{
		For:     "for that mesh VPN",
		Tunes:   "tunes tincd. It counts in whole seconds.",
		Takes:   "the first address of the peer that answers, the shortest link first; through other nodes if none does",
		Notices: "an unanswered ping",
	},
}

const (
	// device is the TUN device of tincd.
	device = "tinc"
	// mtu leaves room in 1500 bytes for tinc's header, padding, digest, UDP and IP.
	mtu = 1400
)

// overlayNet contains the nodes' addresses.
var overlayNet = netip.MustParsePrefix("10.77.0.0/16")

// makeDevice creates the device on a node and routes packets for other nodes to it, so that tincd needs no script.
func makeDevice(ctx context.Context, n overlay.Environment, node string) error {
	if err := n.On.MakeTUN(ctx, machine.TUN{Node: node, Name: device, MTU: mtu, To: overlayNet}); err != nil {
		return fmt.Errorf("create tinc device on %s: %w", node, err)
	}
	return nil
}
