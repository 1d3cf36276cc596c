package netem

import (
	"context"
	"fmt"
	"math/rand/v2"

	"skerry/internal/link"
)

// allSegments is the kernel's unrestricted number of segments per super-packet on a veth device, GSO_MAX_SEGS.
const allSegments = 65535

// Adopt takes over links that another process created and left with Detach, all or none. specs hold their
// present qualities. Earlier drops count as drops by the present quality.
func (e *Engine) Adopt(ctx context.Context, specs []link.Spec) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.validateNew(specs); err != nil {
		return err
	}
	adopted := make([]*wire, 0, len(specs))
	for _, spec := range specs {
		w, err := e.adopt(ctx, spec)
		if err != nil {
			e.releaseAll(adopted)
			return fmt.Errorf("adopting link %s: %w", spec.ID, err)
		}
		adopted = append(adopted, w)
	}
	for _, w := range adopted {
		e.links[w.id] = w
	}
	return nil
}

// Detach releases the engine's resources and leaves its links in the kernel.
func (e *Engine) Detach() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []*wire
	for _, w := range e.links {
		all = append(all, w)
	}
	clear(e.links)
	e.releaseAll(all)
	return nil
}

func (e *Engine) releaseAll(wires []*wire) {
	for _, w := range wires {
		e.release(w.ab.device.space)
		e.release(w.ba.device.space)
	}
}

func (e *Engine) adopt(ctx context.Context, spec link.Spec) (*wire, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a, err := e.adoptDevice(spec.A)
	if err != nil {
		return nil, err
	}
	b, err := e.adoptDevice(spec.B)
	if err != nil {
		e.release(a.space)
		return nil, err
	}
	return &wire{
		id: spec.ID,
		ab: direction{device: a, quality: spec.AB, seeds: rand.NewPCG(spec.Seed, 1)},
		ba: direction{device: b, quality: spec.BA, seeds: rand.NewPCG(spec.Seed, 2)},
	}, nil
}

func (e *Engine) adoptDevice(end link.End) (*device, error) {
	space, err := e.enter(end.Netns)
	if err != nil {
		return nil, err
	}
	dev, err := space.devices.LinkByName(end.Device)
	if err != nil {
		e.release(space)
		return nil, fmt.Errorf("looking for device %s: %w", end.Device, err)
	}
	at := dev.Attrs()
	d := &device{space: space, name: end.Device, index: at.Index, mtu: at.MTU, segments: int(at.GSOMaxSegs)}
	if d.segments == 1 {
		d.segments, d.alone = allSegments, true
	}
	return d, nil
}
