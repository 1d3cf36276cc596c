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
		return fmt.Errorf("create qdiscs of %s: %w", d.device.name, err)
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
		return fmt.Errorf("change qdiscs of %s: %w", d.device.name, err)
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

// reading holds the kernel's counters of one device. Packets and drops wrap around.
type reading struct {
	bytes   uint64
	packets uint32
	// drops are netem's and include those of the queue below it.
	drops, queue uint32
	// waiting is the number of bytes in the queue.
	waiting uint32
}

// updateCounters reads the counters of every direction, with one dump per namespace.
func (e *Engine) updateCounters() error {
	readings := map[*namespace]map[int]reading{}
	for _, n := range e.spaces {
		got, err := n.read()
		if err != nil {
			return fmt.Errorf("read counters in %s: %w", n.path, err)
		}
		readings[n] = got
	}
	for _, w := range e.links {
		for _, d := range []*direction{&w.ab, &w.ba} {
			if now, ok := readings[d.device.space][d.device.index]; ok {
				d.add(now)
			}
		}
	}
	return nil
}

// read returns the readings of the namespace's devices by index.
func (n *namespace) read() (map[int]reading, error) {
	qdiscs, err := n.devices.QdiscList(nil)
	if err != nil {
		return nil, err
	}
	readings := map[int]reading{}
	for _, q := range qdiscs {
		attrs := q.Attrs()
		stats := attrs.Statistics
		if stats == nil || stats.Basic == nil || stats.Queue == nil {
			continue
		}
		r := readings[attrs.LinkIndex]
		switch {
		case q.Type() == Name && attrs.Handle == netemHandle:
			r.bytes, r.packets, r.drops = stats.Basic.Bytes, stats.Basic.Packets, stats.Queue.Drops
		case q.Type() == "hfsc" && attrs.Handle == rateHandle:
			r.queue = stats.Queue.Drops
		case q.Type() == "bfifo" && attrs.Handle == queueHandle:
			r.waiting = stats.Queue.Backlog
		default:
			continue
		}
		readings[attrs.LinkIndex] = r
	}
	return readings, nil
}

// add adds the difference to the last reading.
func (d *direction) add(now reading) {
	packets := uint64(now.packets - d.last.packets)
	d.counters.Packets += packets
	d.counters.Bytes += now.bytes - d.last.bytes
	if !newShape(d.quality, d.device.mtu).layer3 {
		d.counters.Bytes -= packets * etherHeader
	}
	d.drops += uint64(now.drops - d.last.drops)
	d.counters.DroppedQueue += uint64(now.queue - d.last.queue)
	// A packet may be dropped between the readings of the two qdiscs; the next reading corrects that.
	d.counters.DroppedLoss = d.drops - min(d.drops, d.counters.DroppedQueue)
	d.counters.Account.Waiting = int64(now.waiting)
	d.last = now
}
