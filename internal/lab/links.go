package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/link"
	"skerry/internal/machine"
	"skerry/internal/topology"
)

// Links returns the links with their present qualities, in the topology's order.
func (l *Lab) Links() []Link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.links.Links)
}

// Factor is the present scale.
func (l *Lab) Factor() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.links.Factor
}

// Set replaces the qualities of links atomically. The base of a link becomes the given latency and jitter divided by
// the present factor.
func (l *Lab) Set(ctx context.Context, changes []link.Change) error {
	return l.changeLinks(ctx, func(s *linksState) ([]link.Change, error) {
		for _, c := range changes {
			i := slices.IndexFunc(s.Links, func(k Link) bool { return k.ID == c.ID })
			if i < 0 {
				return nil, fmt.Errorf("%w in lab %s: %s", ErrNoLink, l.state.Name, c.ID)
			}
			k := &s.Links[i]
			replaceQuality(&k.AB, &k.BaseAB, c.AB, s.Factor)
			replaceQuality(&k.BA, &k.BaseBA, c.BA, s.Factor)
			if err := errors.Join(k.AB.Validate(), k.BA.Validate()); err != nil {
				return nil, fmt.Errorf("link %s: %w", c.ID, err)
			}
		}
		return changes, nil
	})
}

func replaceQuality(present, base, given *link.Quality, factor float64) {
	if given == nil {
		return
	}
	*present, *base = *given, *given
	if factor > 0 {
		*base = topology.ScaleQuality(*given, 1/factor)
	}
}

// Scale sets every link's latency and jitter to its base times factor, which must not be negative. The overlay of this
// process follows.
func (l *Lab) Scale(ctx context.Context, factor float64) error {
	if err := l.scale(ctx, factor); err != nil || l.overlay == nil {
		return err
	}
	return l.overlay.UpdateLatencies(ctx, l.overlayNet().Links)
}

func (l *Lab) scale(ctx context.Context, factor float64) error {
	return l.changeLinks(ctx, func(s *linksState) ([]link.Change, error) {
		if err := s.scale(factor); err != nil {
			return nil, err
		}
		changes := make([]link.Change, len(s.Links))
		for i, k := range s.Links {
			changes[i] = link.Change{ID: k.ID, AB: &k.AB, BA: &k.BA}
		}
		return changes, nil
	})
}

func (s *linksState) scale(factor float64) error {
	if !(factor >= 0) || math.IsInf(factor, 0) { // also refuses NaN
		return fmt.Errorf("%w: scale %g: want 0 or more", ErrInvalid, factor)
	}
	s.Factor = factor
	for i := range s.Links {
		k := &s.Links[i]
		for _, way := range []struct{ present, base *link.Quality }{{&k.AB, &k.BaseAB}, {&k.BA, &k.BaseBA}} {
			scaled := topology.ScaleQuality(*way.base, factor)
			way.present.Latency, way.present.Jitter = scaled.Latency, scaled.Jitter
		}
	}
	return nil
}

// changeLinks computes changes from a copy of the state, saves the state, and applies the changes.
func (l *Lab) changeLinks(ctx context.Context, work func(*linksState) ([]link.Change, error)) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.part.Lock(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.part.Unlock()) }()
	if !l.owned { // another command may have changed the links
		if err := l.loadLinks(ctx); err != nil {
			return err
		}
	}
	next := l.links.clone()
	changes, err := work(&next)
	if err != nil {
		return err
	}
	// Save before applying: a command that dies in between leaves a wrong state that the next change repairs,
	// but never an unsaved change. The saved state of an ephemeral lab only serves other commands, so that a slow
	// disk must not delay the change.
	if !l.owned {
		if err := l.saveLinks(ctx, next); err != nil {
			return err
		}
	}
	if err := l.part.ShapeLinks(ctx, changes); err != nil {
		if !l.owned {
			err = errors.Join(err, l.saveLinks(ctx, l.links))
		}
		return err
	}
	l.links = next
	if l.owned {
		_ = l.saveLinks(ctx, next) // this process owns the lab and has the state
	}
	return nil
}

// Link is a link of a running lab.
type Link struct {
	ID string `json:"id"`
	A  string `json:"a"` // node
	B  string `json:"b"` // node
	// AB and BA are the present qualities.
	AB link.Quality `json:"ab"`
	BA link.Quality `json:"ba"`
	// BaseAB and BaseBA are the qualities at scale 1.
	BaseAB link.Quality `json:"base_ab"`
	BaseBA link.Quality `json:"base_ba"`
	// Real marks a link that uses the network between two machines, with AB and BA added to it. Way is its one-way
	// latency when the lab started.
	Real bool          `json:"real,omitempty"`
	Way  time.Duration `json:"way_ns,omitempty"`
	// Device is the name of the network device at both ends. Tunnel is the device that encrypts the link, "" for none.
	Device string `json:"device"`
	Tunnel string `json:"tunnel,omitempty"`
}

// RTT is the set round trip; for a real link, the measured one plus the added latency.
func (k Link) RTT() time.Duration { return k.AB.Latency + k.BA.Latency + 2*k.Way }

// specs describes the links for machines.
func (l *Lab) specs() []link.Spec {
	specs := make([]link.Spec, len(l.links.Links))
	for i, k := range l.links.Links {
		specs[i] = link.Spec{
			ID: k.ID, A: link.End{Node: k.A, Device: k.Device}, B: link.End{Node: k.B, Device: k.Device},
			AB: k.AB, BA: k.BA, Seed: linkSeed(l.state.Seed, k.ID), Real: k.Real,
		}
	}
	return specs
}

// byID maps links to their indices.
func (s linksState) byID() map[string]int {
	at := make(map[string]int, len(s.Links))
	for i, k := range s.Links {
		at[k.ID] = i
	}
	return at
}

// Stats returns the statistics of the named links, or of all links.
func (l *Lab) Stats(ctx context.Context, ids ...string) ([]link.Stats, error) {
	return l.part.LinkStats(ctx, ids...)
}

// link returns a link; ErrNoLink if it does not exist.
func (l *Lab) link(id string) (Link, error) {
	for _, k := range l.Links() {
		if k.ID == id {
			return k, nil
		}
	}
	return Link{}, fmt.Errorf("%w in lab %s: %s", ErrNoLink, l.state.Name, id)
}

// Carrier sets the devices at both ends of a link down or up, like unplugging a cable, including those of its tunnel.
// Nodes notice it at once. A link whose Quality is Down looks alive to them.
func (l *Lab) Carrier(id string, up bool) error {
	k, err := l.link(id)
	if err != nil {
		return err
	}
	var ways []machine.Route
	if up && !l.state.Topology.Overlay.Routed() {
		ways = l.routes()
	}
	for _, node := range []string{k.A, k.B} {
		c := machine.Cable{Node: node, Devices: k.devices()}
		for _, r := range ways {
			if r.Node == node {
				c.Routes = append(c.Routes, r)
			}
		}
		if err := l.part.SetCarrier(context.Background(), c, up); err != nil { // events have no context
			return fmt.Errorf("link %s at %s: %w", id, node, err)
		}
	}
	return nil
}

// devices are the link's devices at each end, the lower one first.
func (k Link) devices() []string {
	if k.Tunnel == "" {
		return []string{k.Device}
	}
	return []string{k.Device, k.Tunnel}
}

func (l *Lab) RealLinks() (links []Link) {
	for _, k := range l.Links() {
		if k.Real {
			links = append(links, k)
		}
	}
	return links
}

// markRealLinks marks the links between machines as real; ErrOneMachine if there are none.
func (l *Lab) markRealLinks() error {
	at, found := l.NodeMachines(), false
	for i, k := range l.links.Links {
		if at[k.A] == at[k.B] {
			continue
		}
		k.Real, found = true, true
		k.AB, k.BA, k.BaseAB, k.BaseBA = link.Quality{}, link.Quality{}, link.Quality{}, link.Quality{}
		l.links.Links[i] = k
	}
	if found {
		return nil
	}
	return ErrOneMachine
}

// ErrOneMachine means that real links were requested and no link leads to another machine.
var ErrOneMachine = advice.With(fmt.Errorf("%w: real links need several machines, all nodes are on one", ErrInvalid),
	"assign machines to the sites (site in the machines file, or place), or remove links: real")

// measureRealLinks records the latency of real links. Packets must have crossed all of them.
func (l *Lab) measureRealLinks(ctx context.Context) error {
	stats, err := l.part.LinkStats(ctx)
	if err != nil {
		return fmt.Errorf("measure links between machines: %w", err)
	}
	at := l.links.byID()
	for _, s := range stats {
		if k := &l.links.Links[at[s.ID]]; k.Real {
			k.Way = max(k.Way, s.Path.Delay)
		}
	}
	return nil
}
