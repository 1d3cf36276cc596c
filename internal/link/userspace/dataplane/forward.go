package dataplane

import (
	"skerry/internal/link/userspace/account"
	"skerry/internal/link/userspace/packet"
	"skerry/internal/link/userspace/shaper"
)

// admit accepts a packet that is not due before until. A super-packet stays whole if its segments share one
// fate and a short transmission time. Otherwise it is cut.
func (w *worker) admit(d *direction, k *packet.Packet, now, until int64) {
	if k == nil {
		d.droppedQueue.Add(uint64(w.landing.Segments()))
		return
	}
	segments := k.Segments()
	if d.shaper.Down() {
		d.mu.lock()
		d.account.Drop()
		d.mu.unlock()
		d.droppedLoss.Add(uint64(segments))
		w.pool.put(k)
		return
	}
	draws := d.shaper.Randomized()
	if segments == 1 {
		var fate shaper.Fate
		if draws {
			fate = d.shaper.Fate()
		}
		w.offer(d, k, now, until, fate)
		return
	}
	grain := d.shaper.Grain(k.WireRange(0, 1))
	if !draws && segments <= grain {
		w.offer(d, k, now, until, 0)
		return
	}
	w.admitCut(d, k, now, until, grain, draws)
	w.pool.put(k)
}

// admitCut accepts the segments of k in runs of at most grain ordinary segments. Segments with a fate
// travel alone.
func (w *worker) admitCut(d *direction, k *packet.Packet, now, until int64, grain int, draws bool) {
	run := 0 // first segment not yet offered
	flush := func(end int, fate shaper.Fate) {
		if end == run {
			return
		}
		piece := w.pool.get(k.CutSize(run, end))
		if piece == nil {
			d.droppedQueue.Add(uint64(end - run))
		} else {
			k.Cut(piece, run, end)
			w.offer(d, piece, now, until, fate)
		}
		run = end
	}
	for i := range k.Segments() {
		var fate shaper.Fate
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

// offer accepts a packet with a fate, and its copy if the fate is Duplicated.
func (w *worker) offer(d *direction, k *packet.Packet, now, until int64, fate shaper.Fate) {
	if fate&shaper.Lost != 0 {
		d.droppedLoss.Add(uint64(k.Segments()))
		w.pool.put(k)
		return
	}
	var twin *packet.Packet
	if fate&shaper.Duplicated != 0 {
		if twin = w.pool.get(k.Size()); twin != nil {
			k.Copy(twin)
		}
	}
	w.enqueue(d, k, now, until, fate)
	if twin != nil {
		w.enqueue(d, twin, now, until, d.shaper.CopyFate())
	}
}

func (w *worker) enqueue(d *direction, k *packet.Packet, now, until int64, fate shaper.Fate) {
	if fate&shaper.Corrupted != 0 {
		k.Corrupt(d.shaper.Random())
	}
	d.mu.lock()
	verdict := d.shaper.Offer(now, until, k, fate, d.active)
	first := !d.active && verdict != shaper.Full
	if first {
		d.active = true
		if verdict == shaper.Queued {
			due, departs, _ := d.shaper.NextDue(now)
			w.queue.put(d, d.sendTime(due, departs))
		}
	}
	if verdict == shaper.Send && fate&shaper.Reordered == 0 {
		d.account.Deliver(account.Timing{
			Arrived: now, Departed: now, Due: now, HandedOver: now, Bytes: int64(k.Wire()), RemoteDue: until > 0,
		})
	}
	d.mu.unlock()
	switch verdict {
	case shaper.Full:
		d.droppedQueue.Add(uint64(k.Segments()))
		w.pool.put(k)
	case shaper.Send:
		due := now
		if until > 0 {
			due = min(now, until)
		}
		if fate&shaper.Reordered != 0 {
			due = pastOthers
		}
		w.send(d, k, due, max(0, now-due))
		if first {
			w.drain(d, now, sendBurst)
		}
	}
}

// deliver sends due packets, about most of them, and returns the time.
func (w *worker) deliver(now int64, most int) int64 {
	for most > 0 {
		d := w.queue.popDue(now)
		if d == nil {
			if now = w.now(); w.queue.next.Load() > now {
				return now
			}
			continue
		}
		var sent int
		sent, now = w.drain(d, now, most)
		most -= max(1, sent)
	}
	return now
}

// drain sends due packets, up to most, of a direction that this thread owns. It then returns the
// direction to the queue, or marks it inactive. It returns the packets sent and the time.
func (w *worker) drain(d *direction, now int64, most int) (sent int, _ int64) {
	for {
		d.mu.lock()
		due, departs, waits := d.shaper.NextDue(now)
		leaves := d.sendTime(due, departs)
		if waits && leaves > now {
			now = w.now()
		}
		switch {
		case !waits:
			d.active = false
			d.mu.unlock()
			return sent, now
		case leaves > now, sent == most:
			w.queue.put(d, leaves)
			d.mu.unlock()
			return sent, now
		}
		next := d.shaper.Next(now)
		if next.Packet != nil {
			d.account.Deliver(account.Timing{
				Arrived: next.Arrived, Departed: next.Departs, Due: next.Due, HandedOver: next.Due + now - leaves,
				Bytes: next.Bytes, RemoteDue: next.Foreign,
			})
		}
		d.mu.unlock()
		if next.Packet == nil {
			continue
		}
		w.send(d, next.Packet, due, now-leaves)
		sent++
		now = w.now()
	}
}

// send writes a packet to the device and records its lateness.
func (w *worker) send(d *direction, k *packet.Packet, due, late int64) {
	d.late.Record(late)
	w.late.Load().Record(late)
	k.SetDestination(d.mac)
	sent := 0
	stamp := d.path.encodeDue(due)
	if d.path != nil && k.Segments() > 1 {
		sent = w.sendTrain(d, k, stamp)
	} else {
		if d.path != nil {
			packet.WriteStamp(k.Bytes(), stamp)
		}
		if writeRaw(d.fd, k.Bytes()) == 0 {
			sent = k.Segments()
		}
	}
	if sent > 0 {
		d.bytes.Add(uint64(k.WireRange(0, sent)))
		d.packets.Add(uint64(sent))
	}
	if lost := k.Segments() - sent; lost > 0 {
		d.droppedLoss.Add(uint64(lost)) // the device is down
	}
	w.pool.put(k)
}
