package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/base/strict"
	"skerry/internal/base/suggest"
	"skerry/internal/install"
	"skerry/internal/lab/overlay"
	"skerry/internal/lab/overlay/babel"
	"skerry/internal/lab/overlay/tinc"
	"skerry/internal/topology"
)

// overlayNet describes the lab for its overlay: tunnels replace the links below them.
func (l *Lab) overlayNet() overlay.Environment {
	n := overlay.Environment{Nodes: l.Hosts(), On: l.part, Measure: l.part, Log: l.log}
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

// startOverlay starts the routing daemons.
func (l *Lab) startOverlay(ctx context.Context, c Config) (err error) {
	if c.Overlay == nil {
		return nil
	}
	c.Progress("routes", 0, len(l.nodes))
	l.overlay, err = c.Overlay.Start(ctx, l.overlayNet())
	return err
}

// Trace returns the links on the present path from one node to another, and their total latency.
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

// Routes count as settled if no path changed for quietRoutes. settleTimeout bounds the wait, since links that come and
// go never settle.
const (
	quietRoutes   = 1500 * time.Millisecond
	settleTimeout = 15 * time.Second
	settlePoll    = 250 * time.Millisecond
)

// WaitRoutes waits until the kernel's routes between nodes are settled. It does not see tinc's internal routes.
func (l *Lab) WaitRoutes(ctx context.Context) error {
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

// OverlayRestarts is the number of routing daemons that ended and were restarted by this process.
func (l *Lab) OverlayRestarts() int {
	if l.overlay == nil {
		return 0
	}
	return l.overlay.Restarts()
}

// closeOverlay stops the supervision of the daemons, which end with their nodes.
func (l *Lab) closeOverlay() error {
	if l.overlay == nil {
		return nil
	}
	running := l.overlay
	l.overlay = nil
	return running.Close()
}

// Overlays is the registry of overlays, in display order.
func Overlays() []overlay.Definition {
	return []overlay.Definition{
		babel.Definition,
		tinc.Definition,
	}
}

// overlayNames are the names of overlays in topologies.
func overlayNames() []string {
	var names []string
	for _, a := range Overlays() {
		names = append(names, a.Name)
	}
	return names
}

func OverlayRecipes() []install.Recipe {
	var recipes []install.Recipe
	for _, a := range Overlays() {
		recipes = append(recipes, a.Recipe)
	}
	return recipes
}

func findOverlay(name string) (overlay.Definition, bool) {
	all := Overlays()
	i := slices.IndexFunc(all, func(a overlay.Definition) bool { return a.Name == name })
	if i < 0 {
		return overlay.Definition{}, false
	}
	return all[i], true
}

// NewOverlay returns the overlay of a topology with its installed program; nil for direct. The error is that of
// CheckOverlay, or has installation advice.
func NewOverlay(ctx context.Context, o topology.Overlay) (overlay.Overlay, error) {
	if err := checkOverlaySpec(o).AsError(); err != nil {
		return nil, fmt.Errorf("topology overlay: %w", err)
	}
	a, ok := findOverlay(o.Kind)
	if !ok {
		return nil, nil
	}
	options, _ := readOverlayOptions(a, o.Settings[a.Name]) // checked above
	in, err := FindOverlayProgram(ctx, o)
	if err != nil {
		return nil, err
	}
	return options.New(in), nil
}

// FindOverlayProgram locates the program of the topology's overlay; the zero value if it has none.
func FindOverlayProgram(ctx context.Context, o topology.Overlay) (install.Installation, error) {
	a, ok := findOverlay(o.Kind)
	if !ok {
		return install.Installation{}, nil
	}
	dir, err := install.DefaultDir()
	if err != nil {
		return install.Installation{}, err
	}
	in, err := install.Store{Dir: dir}.Find(ctx, a.Recipe, "")
	if err != nil {
		return in, fmt.Errorf("topology overlay: %w", err)
	}
	return in, nil
}

// overlaySection is the key of the overlay in a topology.
const overlaySection = "overlay"

// CheckOverlay returns the mistakes in the overlay of a topology. Paths are relative to the topology.
func CheckOverlay(t topology.Topology) strict.Problems { return checkOverlaySpec(t.Overlay) }

func checkOverlaySpec(o topology.Overlay) (ps strict.Problems) {
	fail := func(path, message, hint string) {
		ps = append(ps, strict.Problem{Path: path, Message: message, Hint: hint})
	}
	chosen, routed := findOverlay(o.Kind)
	if known := append([]string{topology.Direct}, overlayNames()...); o.Kind != "" && !slices.Contains(known, o.Kind) {
		hint := ""
		if near := suggest.Nearest(o.Kind, known); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		fail(strict.Join(overlaySection, "kind"), fmt.Sprintf("%q is not one of %s", o.Kind, strings.Join(known, ", ")), hint)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Settings)) {
		path := strict.Join(overlaySection, name)
		switch _, known := findOverlay(name); {
		case !known:
			fail(path, fmt.Sprintf("unknown key %q", name), "use one of kind, "+strings.Join(overlayNames(), ", "))
		case name != o.Kind:
			fail(path, fmt.Sprintf("options of %s have no effect: it is not the overlay", name), fmt.Sprintf("write overlay: {kind: %s, ...}", name))
		}
	}
	if routed {
		_, mistakes := readOverlayOptions(chosen, o.Settings[chosen.Name])
		ps = append(ps, mistakes...)
	}
	return ps
}

// readOverlayOptions decodes the options of an overlay.
func readOverlayOptions(a overlay.Definition, settings map[string]any) (overlay.Options, strict.Problems) {
	options, path := a.Options(), strict.Join(overlaySection, a.Name)
	ps := strict.Decode(strict.Mapping(settings), options, path)
	for i, p := range ps { // messages start with the path of the key or of its parent
		ps[i].Message = strings.TrimPrefix(strings.TrimPrefix(p.Message, p.Path+": "), path+": ")
	}
	if len(ps) > 0 {
		return nil, ps
	}
	for _, p := range options.Check() {
		p.Path = strict.Join(path, p.Path)
		ps = append(ps, p)
	}
	return options, ps
}
