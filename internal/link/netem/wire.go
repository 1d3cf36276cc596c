package netem

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"skerry/internal/link"
)

type wire struct {
	id     string
	ab, ba direction
}

// direction is one direction of a wire.
type direction struct {
	device   *device
	quality  link.Quality
	seeds    *rand.PCG // each setting of the qdisc uses the next seed
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

// start creates the direction's qdiscs.
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

// set changes the qdiscs in place: packets in the latency stage keep their times, and packets waiting for the
// bandwidth leave at the new one.
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

// wholeRate is the bandwidth from which super-packets stay whole. At 2 Gbit/s the error of charging one Ethernet
// header instead of several is 0.9 %, and cutting would cost more processor time than that is worth.
const wholeRate = 2_000_000_000

// drawsEach reports whether netem must see each packet separately.
func drawsEach(q link.Quality) bool {
	drawn := q.Loss > 0 || q.Duplicate > 0 || q.Reorder > 0 || q.Corrupt > 0 || q.Burst != nil
	return drawn || q.Bandwidth > 0 && q.Bandwidth < wholeRate
}
