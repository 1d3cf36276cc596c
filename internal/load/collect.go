package load

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// holdTail is how long the last interval of a given duration waits for operations in
// flight, so that they do not make a bin of their own.
const holdTail = 250 * time.Millisecond

var errStuck = errors.New("the client gave no answer")

// collect takes what the workers counted once a second until all have returned, or
// nothing but stuck ones is left: those are counted as unknown and left behind. It
// returns when that was.
func (d *driver) collect(g *segment, away map[*worker]bool, returned <-chan *worker, t, highest int64) time.Duration {
	from, tick := g.start, int64(1)
	timer := time.NewTimer(0)
	defer timer.Stop()
	stopped := g.stopped
	for len(away) > 0 {
		next := g.start + time.Duration(tick)*time.Second
		if g.end > 0 && next >= g.end && next < g.end+time.Second {
			next = max(next, g.end+holdTail)
		}
		timer.Reset(next - d.now())
		select {
		case w := <-returned:
			delete(away, w)
			continue
		case <-stopped:
			stopped = nil
			d.interrupt()
			continue
		case <-timer.C:
		}
		now := d.now()
		d.flush(from, now, min(t+tick-1, highest))
		from, tick = now, int64((now-g.start)/time.Second)+1
		d.abandon(g, now, away)
	}
	now := d.now()
	d.flush(from, now, min(t+tick-1, highest))
	return now
}

// interrupt wakes all workers that wait for their next operation.
func (d *driver) interrupt() {
	for _, w := range d.workers {
		if w.waker != nil {
			_ = w.waker.interrupt() // fails only on a closed one
		}
	}
}

// abandon leaves workers behind that are stuck, when nobody else is away any more.
func (d *driver) abandon(g *segment, now time.Duration, away map[*worker]bool) {
	for w := range away {
		if w.ctx.Load().overdue(now) < stuckAfter {
			return
		}
	}
	if !g.closedAt(now) && !g.expiredAt(now) && (g.operations == 0 || g.pace.issued() < g.operations) {
		g.stop(StoppedStuck)
	}
	for w := range away {
		w.shard.mu.Lock()
		if c := w.ctx.Load(); c.overdue(now) > 0 { // it did not come back after all
			w.abandoned = true
			w.recordAbandoned(c.doing, time.Duration(c.at.Load())-d.spec.Timeout)
			took := now - time.Duration(c.at.Load()) + d.spec.Timeout
			w.shard.now.addOperation(c.doing, times{took, took}, &OpError{InDoubt, classStuck, "",
				fmt.Errorf("%w: none %v after the timeout of %v", errStuck, stuckAfter, d.spec.Timeout)})
			d.stuck++
			delete(away, w)
			d.workers = removeWorker(d.workers, w)
		}
		w.shard.mu.Unlock()
	}
}

// removeWorker is a copy of ws that lacks w.
func removeWorker(ws []*worker, w *worker) []*worker {
	return slices.DeleteFunc(slices.Clone(ws), func(x *worker) bool { return x == w })
}

// flush makes an interval of what was counted since from and passes it on.
func (d *driver) flush(from, now time.Duration, t int64) {
	i := Interval{T: t, Start: d.base.Add(from), Length: now - from, Disturbance: d.disturbances.flush(now)}
	for _, s := range d.shards {
		counted := s.swap()
		i.Writes = counted.writes.since(from, now, i.Writes)
		counted.drain(&i.Totals)
	}
	for _, w := range d.workers {
		if w.ctx.Load().inFlight() {
			i.InFlight++
		}
	}
	cpu, retries := processCPU(), d.clientRetries()
	i.CPU, i.Retries = cpu-d.cpu, i.Retries+retries-d.retries
	d.cpu, d.retries = cpu, retries
	d.emit(i)
}

func (d *driver) clientRetries() (n int64) {
	for _, w := range d.workers {
		if r, ok := w.client.(Retrier); ok {
			n += r.Retries()
		}
	}
	return n
}
