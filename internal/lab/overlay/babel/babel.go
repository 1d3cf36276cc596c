// Package babel routes with babeld: the Babel protocol (RFC 8966) with its extension for delay-based routing
// (draft-ietf-babel-rtt-extension), in which the cost of a link is its round-trip time.
package babel

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
	"skerry/internal/install"
	"skerry/internal/lab/overlay"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// Name is the overlay's name in topologies.
const Name = "babel"

// Recipe installs Debian's babeld.
var Recipe = install.Recipe{
	Name:     "babeld",
	Summary:  "babeld, which routes for overlay: babel",
	Wanted:   install.ByTests,
	Packages: []string{"babeld/sid"}, Closure: true,
	Programs:    []string{"babeld"},
	VersionArgs: []string{"-V"},
	// "babeld-1.12.1".
	Version: install.MatchVersion(`babeld-([0-9][^ \n]*)`),
}

// readyTimeout bounds the time for routes to spread: about a second for eight nodes, much longer for many nodes on a
// machine with few cores.
const readyTimeout = 2 * time.Minute

type Babel struct {
	program string
	env     []string
	options Options
}

var _ overlay.Overlay = (*Babel)(nil)

func (*Babel) Name() string { return Name }

func (*Babel) Needs() overlay.Requirements {
	return overlay.Requirements{IPv6: true}
}

func (b *Babel) Start(ctx context.Context, n overlay.Environment) (overlay.Running, error) {
	r := &running{babel: b, Supervisor: overlay.NewSupervisor(n.Log), net: n, span: rttSpan(n.Links)}
	var g errgroup.Group
	for _, h := range n.Nodes {
		g.Go(func() error {
			c, err := b.configure(ctx, h, n.Links, r.span)
			if err != nil {
				return err
			}
			return r.Supervisor.Start(ctx, h, c)
		})
	}
	err := g.Wait()
	if err == nil {
		err = r.waitRoutes(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start babel: %w%s", err, r.LastLog()), r.Close())
	}
	return r, nil
}

// configure writes the configuration of a node, and returns the command to start.
func (b *Babel) configure(ctx context.Context, h host.Host, all []overlay.Link, span time.Duration) (host.Command, error) {
	var links []overlay.Link
	for _, l := range all {
		if l.A == h.Name() || l.B == h.Name() {
			links = append(links, l)
		}
	}
	dir := filepath.Join(h.Dir(), "babel")
	if err := h.Files().MakeDir(ctx, dir); err != nil {
		return host.Command{}, fmt.Errorf("create directory of babeld on %s: %w", h.Name(), err)
	}
	file := filepath.Join(dir, "babeld.conf")
	if err := files.WriteText(ctx, h.Files(), file, formatConfig(h.Addr(), links, span, b.options)); err != nil {
		return host.Command{}, fmt.Errorf("configure babeld on %s: %w", h.Name(), err)
	}
	return host.Command{
		Name: "babeld", Path: b.program, Env: b.env, Dir: dir, Log: filepath.Join(dir, "babeld.log"),
		// babeld refuses to start if a killed one left a pid file.
		Args: []string{"-c", file, "-S", filepath.Join(dir, "state"), "-I", ""},
	}, nil
}

type running struct {
	*overlay.Supervisor
	babel *Babel
	net   overlay.Environment

	mu   sync.Mutex
	span time.Duration // that the daemons go by
}

// UpdateLatencies restarts the daemons if the span changes, since babeld reads link costs only at start. Routes are
// missing for about a second.
func (r *running) UpdateLatencies(ctx context.Context, links []overlay.Link) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := rttSpan(links)
	if now == r.span {
		return nil
	}
	for _, h := range r.net.Nodes {
		if _, err := r.babel.configure(ctx, h, links, now); err != nil {
			return err
		}
	}
	r.span = now
	err := r.Restart(ctx)
	if err == nil {
		err = r.waitRoutes(ctx)
	}
	if err != nil {
		return fmt.Errorf("update latencies of babel: %w%s", err, r.LastLog())
	}
	return nil
}

// waitRoutes waits for routes between all nodes.
func (r *running) waitRoutes(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("no routes after %v", readyTimeout))
	defer cancel()
	return overlay.WaitUntil(ctx, r.Ready)
}

func (r *running) Ready(ctx context.Context) error { return r.net.Routed(ctx) }

// The cost of a link is its round trip in units, rounded down, plus hopCost. A metric is the sum of a path's costs and
// has 16 bits: 65535 is unreachable. Invariants:
//
//   - The longest of all shortest paths costs at most 1/headroom of the range. Failures and slower links may lengthen
//     it by that factor before a node counts as unreachable.
//   - One link alone costs at most maxPenalty, so that a path over one very slow link and otherwise no longer than usual
//     has a finite metric.
//   - A longer path is chosen only if the shorter one is less than one unit per hop shorter: 0.03 ms if the longest path
//     is 300 ms.
//
// Fine units have another advantage: a shorter path can look like a loop to babeld, which then requests it only if it is
// 512 units shorter.
const (
	// metricRange is the part of the 16 bits for round trips; hops use the rest.
	metricRange = 65_000
	headroom    = 6
	maxPenalty  = metricRange / headroom * (headroom - 2)
	// hopCost is the minimum that babeld accepts. Among paths of equal length it prefers fewer hops.
	hopCost = 1
	// rttMin, in ms, is the minimum that babeld accepts. It costs nothing and is subtracted from every round trip.
	rttMin = 0.001
	// leastSpan keeps a unit at 4.6 us: round trips vary by some 50 us, and babeld announces changes from 384 units.
	leastSpan = 300 * time.Millisecond
	// rttDecay is the weight of a new round trip against earlier ones, in 1/256.
	rttDecay = 128
)

// rttSpan is the round trip that would cost metricRange.
func rttSpan(links []overlay.Link) time.Duration {
	longest := time.Duration(0)
	for _, row := range overlay.ShortestRTTs(links) {
		for _, rtt := range row {
			longest = max(longest, rtt)
		}
	}
	return max(headroom*longest, leastSpan)
}

// formatConfig is babeld's configuration on one node; the span is the same on all nodes.
func formatConfig(addr string, links []overlay.Link, span time.Duration, o Options) string {
	var b strings.Builder
	b.WriteString("random-id true\nskip-kernel-setup true\nlink-detect true\n")
	// Changes must show at once, so costs are not smoothed.
	b.WriteString("smoothing-half-life 0\n")
	// Each link that is slower than rttMax costs maxPenalty.
	rttMax := span.Seconds() * 1000 * maxPenalty / metricRange
	fmt.Fprintf(&b, "default type tunnel rxcost %d hello-interval %s update-interval %s enable-timestamps true "+
		"rtt-min %.3f rtt-max %.3f max-rtt-penalty %d rtt-decay %d split-horizon false link-quality false\n",
		hopCost, formatSeconds(o.Hello), formatSeconds(o.Update), rttMin, rttMax, maxPenalty, rttDecay)
	for _, l := range links {
		fmt.Fprintf(&b, "interface %s\n", l.Device)
	}
	fmt.Fprintf(&b, "redistribute ip %s/32 eq 32 local allow\nredistribute local deny\nredistribute deny\n", addr)
	return b.String()
}

// formatSeconds formats an interval with the hundredths that babeld reads.
func formatSeconds(d unit.Duration) string {
	return fmt.Sprintf("%.2f", time.Duration(d).Seconds())
}

// Definition registers babel.
var Definition = overlay.Definition{
	Name: Name, Recipe: Recipe, Options: func() overlay.Options { return new(Options) },
	Docs: overlay.Docs{
		For:     "for the path of the lowest round-trip time",
		Tunes:   "tunes babeld.",
		Takes:   "the path with the lowest round-trip time: babeld, with Babel's metric from measured round trips",
		Notices: "a silent link after about three hellos, latencies within seconds",
	},
}

// Options tune babeld. The defaults detect a silent link failure in about half a second.
type Options struct {
	// Hello is the interval of hellos on each link. A link that fails silently is given up after about four hellos. At
	// least 10ms.
	Hello unit.Duration `yaml:"hello" jsonschema:"default=150ms"`
	// Update is the interval of full routing updates; changes are announced at once.
	Update unit.Duration `yaml:"update" jsonschema:"default=1s"`
}

var _ overlay.Options = (*Options)(nil)

// minInterval is the resolution of babeld.
const minInterval = unit.Duration(10 * time.Millisecond)

func (o *Options) Check() (ps strict.Problems) {
	for _, i := range []struct {
		key string
		d   unit.Duration
	}{{"hello", o.Hello}, {"update", o.Update}} {
		if i.d < minInterval {
			ps = append(ps, strict.Problem{Path: i.key, Message: "babeld counts in hundredths of a second", Hint: "give 10ms or more"})
		}
	}
	return ps
}

func (o *Options) New(in install.Installation) overlay.Overlay {
	return &Babel{program: in.Programs["babeld"], env: in.Env, options: *o}
}
