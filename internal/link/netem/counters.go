package netem

import "fmt"

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
