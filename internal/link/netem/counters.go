package netem

import (
	"fmt"

	"skerry/internal/link"
)

// reading is what the kernel has counted at one qdisc; packets and drops wrap around.
type reading struct {
	bytes          uint64
	packets, drops uint32
}

// count brings the counters of every direction up to date: one dump a namespace.
func (e *Engine) count() error {
	readings := map[*namespace]map[int]reading{}
	for _, n := range e.spaces {
		got, err := n.read()
		if err != nil {
			return fmt.Errorf("reading the counters in %s: %w", n.path, err)
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

// read returns the readings of the namespace's netem qdiscs by device index.
func (n *namespace) read() (map[int]reading, error) {
	qdiscs, err := n.devices.QdiscList(nil)
	if err != nil {
		return nil, err
	}
	readings := map[int]reading{}
	for _, q := range qdiscs {
		attrs := q.Attrs()
		if q.Type() != Name || attrs.Handle != handle || attrs.Statistics == nil {
			continue
		}
		basic, queue := attrs.Statistics.Basic, attrs.Statistics.Queue
		if basic != nil && queue != nil {
			readings[attrs.LinkIndex] = reading{bytes: basic.Bytes, packets: basic.Packets, drops: queue.Drops}
		}
	}
	return readings, nil
}

// add counts what happened since the last reading. netem does not tell why it dropped
// a packet; the quality in force does, unless both reasons are there.
func (d *direction) add(now reading) {
	packets := uint64(now.packets - d.last.packets)
	d.counters.Packets += packets
	d.counters.Bytes += now.bytes - d.last.bytes - packets*etherHeader
	drops := uint64(now.drops - d.last.drops)
	if loses(d.quality) {
		d.counters.DroppedLoss += drops
	} else {
		d.counters.DroppedQueue += drops
	}
	d.last = now
}

// loses tells whether a link of that quality drops packets that the queue has room for.
func loses(q link.Quality) bool { return q.Down || q.Loss > 0 || q.Burst != nil }
