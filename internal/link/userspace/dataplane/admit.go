package dataplane

import (
	"skerry/internal/link/userspace/packet"
	"skerry/internal/link/userspace/shape"
)

// admit takes a packet in. A super-packet stays whole as long as its segments share
// one fate and pass the link in a moment; else it is cut.
func (p *Plane) admit(d *direction, k *packet.Packet, now int64) {
	if k == nil {
		d.droppedQueue.Add(uint64(p.landing.Segments()))
		return
	}
	segments := k.Segments()
	if d.shaper.Down() {
		d.droppedLoss.Add(uint64(segments))
		p.pool.Put(k)
		return
	}
	draws := d.shaper.Draws()
	if segments == 1 {
		var fate shape.Fate
		if draws {
			fate = d.shaper.Fate()
		}
		p.offer(d, k, now, fate)
		return
	}
	grain := d.shaper.Grain(k.WireOf(0, 1))
	if !draws && segments <= grain {
		p.offer(d, k, now, 0)
		return
	}
	p.admitCut(d, k, now, grain, draws)
	p.pool.Put(k)
}

// admitCut takes in the segments of k in runs: ordinary ones together, at most grain of
// them, each other one alone.
func (p *Plane) admitCut(d *direction, k *packet.Packet, now int64, grain int, draws bool) {
	run := 0 // first segment not yet offered
	flush := func(end int, fate shape.Fate) {
		if end == run {
			return
		}
		piece := p.pool.Get(k.CutSize(run, end))
		if piece == nil {
			d.droppedQueue.Add(uint64(end - run))
		} else {
			k.Cut(piece, run, end)
			p.offer(d, piece, now, fate)
		}
		run = end
	}
	for i := range k.Segments() {
		var fate shape.Fate
		if draws {
			fate = d.shaper.Fate()
		}
		if fate != 0 {
			flush(i, 0)
			flush(i+1, fate)
		} else if i+1-run >= grain {
			flush(i+1, 0)
		}
	}
	flush(k.Segments(), 0)
}

// offer takes in a packet of one fate, with the copy that may belong to it.
func (p *Plane) offer(d *direction, k *packet.Packet, now int64, fate shape.Fate) {
	if fate&shape.Lost != 0 {
		d.droppedLoss.Add(uint64(k.Segments()))
		p.pool.Put(k)
		return
	}
	var twin *packet.Packet
	if fate&shape.Twice != 0 {
		if twin = p.pool.Get(k.Size()); twin != nil {
			k.Copy(twin)
		}
	}
	p.enqueue(d, k, now, fate)
	if twin != nil {
		p.enqueue(d, twin, now, d.shaper.CopyFate())
	}
}

func (p *Plane) enqueue(d *direction, k *packet.Packet, now int64, fate shape.Fate) {
	if fate&shape.Damaged != 0 {
		k.Corrupt(d.shaper.Random())
	}
	switch d.shaper.Offer(now, k, fate) {
	case shape.Full:
		d.droppedQueue.Add(uint64(k.Segments()))
		p.pool.Put(k)
	case shape.Send:
		p.send(d, k, 0)
	case shape.Queued:
		if d.place < 0 {
			p.reschedule(d)
		}
	}
}
