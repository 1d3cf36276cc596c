package event

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"skerry/internal/link"
	"skerry/internal/topology"
)

// LinkSetter applies changes to links. A lab implements it.
type LinkSetter interface {
	// Set changes the settings of links, all of one call at the same moment.
	Set(ctx context.Context, changes []link.Change) error
	// Carrier sets the devices at both ends of a link up or down.
	Carrier(id string, up bool) error
}

// LinkLayers computes the settings of links. The settings of a direction are its base, which drift
// changes, with all layers of active events applied in order:
//
//	base 40ms ─ latency x 3 ─► 120ms ─ latency + 20ms ─► 140ms ─ link_down ─► down
//
// Layers can be removed in any order.
type LinkLayers struct {
	setter LinkSetter

	mu          sync.Mutex
	base        map[direction]link.Quality
	current     map[direction]link.Quality // settings that the emulator has
	carrierDown map[string]bool            // links whose devices are down
	layers      []*layer
	// changes counts the changes of each direction, as the emulator does. It is nil without
	// TrackAccounts.
	changes map[direction]uint64
	stats   func(context.Context, ...string) ([]link.Stats, error)
}

// layer is the change of one event.
type layer struct {
	changes map[direction]func(link.Quality) link.Quality
	// carrierDown overrides the state of the devices, by link.
	carrierDown map[string]bool
}

// NewLinkLayers returns the links in their current state, without layers.
func NewLinkLayers(links []topology.Link, s LinkSetter) *LinkLayers {
	n := &LinkLayers{setter: s, base: map[direction]link.Quality{}, carrierDown: map[string]bool{}}
	for _, l := range links {
		n.base[direction{l.ID, false}], n.base[direction{l.ID, true}] = l.AB, l.BA
	}
	n.current = make(map[direction]link.Quality, len(n.base))
	for d, q := range n.base {
		n.current[d] = q
	}
	return n
}

// SetBase changes the base, as drift does. Layers stay in force.
func (n *LinkLayers) SetBase(ctx context.Context, changes []link.Change) (LinkUpdate, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before := map[direction]link.Quality{}
	replace := func(id string, back bool, q *link.Quality) {
		if d := (direction{id, back}); q != nil {
			before[d] = n.base[d]
			n.base[d] = *q
		}
	}
	for _, c := range changes {
		replace(c.ID, false, c.AB)
		replace(c.ID, true, c.BA)
	}
	var touched []direction
	for d := range before {
		touched = append(touched, d)
	}
	u, err := n.applyLayers(ctx, touched)
	if err != nil {
		for d, q := range before {
			n.base[d] = q
		}
	}
	return u, err
}

// addLayer puts a layer on top. On an error, no layer is added.
func (n *LinkLayers) addLayer(ctx context.Context, l *layer) (LinkUpdate, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.layers = append(n.layers, l)
	u, err := n.applyLayers(ctx, l.directions())
	if err != nil {
		n.layers = n.layers[:len(n.layers)-1]
		if len(l.carrierDown) > 0 { // links change one by one: restore those that were changed
			_, again := n.applyLayers(ctx, l.directions())
			err = errors.Join(err, again)
		}
	}
	return u, err
}

// removeLayer removes a layer; a missing one is not an error. If the links cannot be changed, the
// layer is removed all the same, and the next change of these links tries again.
func (n *LinkLayers) removeLayer(ctx context.Context, l *layer) (LinkUpdate, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.Index(n.layers, l)
	if i < 0 {
		return LinkUpdate{}, nil
	}
	n.layers = slices.Delete(n.layers, i, i+1)
	return n.applyLayers(ctx, l.directions())
}

func (l *layer) directions() []direction {
	ds := make([]direction, 0, len(l.changes))
	for d := range l.changes {
		ds = append(ds, d)
	}
	return ds
}

func (n *LinkLayers) applyLayers(ctx context.Context, touched []direction) (u LinkUpdate, err error) {
	next := map[direction]link.Quality{}
	changes := map[string]*link.Change{}
	for _, d := range touched {
		q, ok := n.base[d]
		if !ok {
			return u, fmt.Errorf("link %s: %w", d.id, link.ErrUnknown)
		}
		for _, l := range n.layers {
			if f := l.changes[d]; f != nil {
				q = f(q)
			}
		}
		if q.Equal(n.current[d]) {
			continue
		}
		next[d] = q
		c := changes[d.id]
		if c == nil {
			c = &link.Change{ID: d.id}
			changes[d.id] = c
		}
		if d.back {
			c.BA = &q
		} else {
			c.AB = &q
		}
	}
	if len(changes) > 0 {
		list := make([]link.Change, 0, len(changes))
		for _, c := range changes {
			list = append(list, *c)
		}
		if err := n.setter.Set(ctx, list); err != nil {
			return u, err
		}
		u.at = time.Now()
		for d, q := range next {
			if number, seen := n.countChange(d); seen {
				u.changes = append(u.changes, directionChange{d, number, n.current[d], q})
			}
			n.current[d] = q
		}
	}
	return u, n.applyCarrier(touched)
}

func setDown(down bool) func(link.Quality) link.Quality {
	return func(q link.Quality) link.Quality {
		q.Down = down
		return q
	}
}

func newCarrierAction(links []linkTarget, text string, f func(link.Quality) link.Quality, pull bool) action {
	on, ok := newLinkAction(links, text, f).(*linkAction)
	if !ok {
		return nil
	}
	on.layer.carrierDown = make(map[string]bool, len(links))
	for _, l := range links {
		on.layer.carrierDown[l.id] = pull
	}
	return on
}

func (n *LinkLayers) applyCarrier(touched []direction) error {
	var ids []string
	for _, d := range touched {
		ids = append(ids, d.id)
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		pulled := false
		for _, l := range n.layers {
			if pull, ok := l.carrierDown[id]; ok {
				pulled = pull
			}
		}
		if pulled == n.carrierDown[id] {
			continue
		}
		if err := n.setter.Carrier(id, !pulled); err != nil {
			return fmt.Errorf("set the carrier of link %s: %w", id, err)
		}
		n.carrierDown[id] = pulled
	}
	return nil
}
