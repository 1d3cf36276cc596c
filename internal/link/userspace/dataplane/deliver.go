package dataplane

import (
	"skerry/internal/link/userspace/account"
	"skerry/internal/link/userspace/packet"
)

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
