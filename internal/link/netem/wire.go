package netem

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"skerry/internal/link"
)

// wire is a link that exists.
type wire struct {
	id     string
	ab, ba direction
}

// direction is one direction of a wire with its qdiscs.
type direction struct {
	device   *device
	quality  link.Quality
	seeds    *rand.PCG // each setting of the qdisc takes the next one
	last     reading
	drops    uint64 // for any reason
	counters link.Counters
}

func (e *Engine) createLink(ctx context.Context, spec link.Spec) (*wire, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a, b, err := e.createPair(spec)
	if err != nil {
		return nil, err
	}
	w := &wire{
		id: spec.ID,
		ab: direction{device: a, seeds: rand.NewPCG(spec.Seed, 1)},
		ba: direction{device: b, seeds: rand.NewPCG(spec.Seed, 2)},
	}
	err = w.ab.start(e.tables, spec.AB)
	if err == nil {
		err = w.ba.start(e.tables, spec.BA)
	}
	if err != nil {
		return nil, errors.Join(err, e.removeLinks([]*wire{w}))
	}
	return w, nil
}

// start gives the direction its qdiscs.
func (d *direction) start(t tables, q link.Quality) error {
	d.quality = q
	if err := d.device.setSuperPackets(drawsEach(q)); err != nil {
		return err
	}
	if err := d.device.build(t.options(q, d.seeds.Uint64()), newShape(q, d.device.mtu)); err != nil {
		return fmt.Errorf("giving %s its qdiscs: %w", d.device.name, err)
	}
	return nil
}

// set changes the qdiscs in place: packets whose latency passes keep their times, and those that wait
// for the bandwidth leave at the new one.
func (d *direction) set(t tables, q link.Quality) error {
	if err := d.device.setSuperPackets(drawsEach(q)); err != nil {
		return err
	}
	mtu := d.device.mtu
	if err := d.device.change(t.options(q, d.seeds.Uint64()), newShape(d.quality, mtu), newShape(q, mtu)); err != nil {
		return fmt.Errorf("changing the qdiscs of %s: %w", d.device.name, err)
	}
	d.quality = q
	return nil
}

// wholeRate is the bandwidth from which on super-packets stay whole: at 2 Gbit/s the
// error of charging one for several Ethernet headers, 0.9 %, is worth less than
// the processor time of cutting it.
const wholeRate = 2_000_000_000

// drawsEach tells whether each packet must meet netem for itself.
func drawsEach(q link.Quality) bool {
	drawn := q.Loss > 0 || q.Duplicate > 0 || q.Reorder > 0 || q.Corrupt > 0 || q.Burst != nil
	return drawn || q.Bandwidth > 0 && q.Bandwidth < wholeRate
}
