package dataplane

import (
	"context"
	"sync/atomic"

	"skerry/internal/link"
	"skerry/internal/link/userspace/account"
	"skerry/internal/link/userspace/device"
	"skerry/internal/link/userspace/shaper"
)

type Link struct {
	ID     string
	A, B   *device.Port
	ab, ba *direction
	pa, pb *port
	path   *path // nil where B is on this machine
}

// port is a device; one thread at a time reads it.
type port struct {
	reading    spin // held while a burst of packets is read and queued
	fd         int
	linkHeader int
	empty      int64      // when the port was last read empty; owned by the reader
	number     int        // number in epoll events
	out        *direction // direction of the packets read here
	path       *path      // nil for a device
}

// direction is one direction of a link.
type direction struct {
	mu      spin // protects shaper, account and active
	shaper  *shaper.Shaper
	account *account.Recorder
	// active is true while the direction is in the queue or a thread owns it. The thread that sets active
	// becomes the owner. Only the owner writes to fd, which preserves the order of packets.
	active bool

	fd    int   // packets are written here
	path  *path // nil on one machine; otherwise super-packets leave as trains
	mac   [6]byte
	place int   // index in the queue's heap, -1 if absent
	due   int64 // due time in the queue

	bytes, packets            atomic.Uint64
	droppedQueue, droppedLoss atomic.Uint64
	late                      account.Histogram
}

// NewLink prepares a link between two open devices. Add starts it.
func NewLink(spec link.Spec, a, b *device.Port) *Link {
	direct := func(name string, q link.Quality, to *device.Port) *direction {
		return &direction{
			shaper:  shaper.New(shaper.Compile(q), spec.ID, name, spec.Seed),
			account: account.New(0, q), fd: to.FD, mac: to.MAC, place: -1,
		}
	}
	l := &Link{ID: spec.ID, A: a, B: b, ab: direct("ab", spec.AB, b), ba: direct("ba", spec.BA, a)}
	l.pa = &port{fd: a.FD, linkHeader: a.LinkHeader, out: l.ab}
	l.pb = &port{fd: b.FD, linkHeader: b.LinkHeader, out: l.ba}
	if b.Remote {
		l.path = newPath(spec)
		l.pb.path, l.ab.path = l.path, l.path
	}
	return l
}

// Add starts links, all or none.
func (p *Plane) Add(ctx context.Context, links []*Link) error {
	var failed error
	err := p.runTask(ctx, func() {
		for _, l := range links {
			for _, t := range []*port{l.pa, l.pb} {
				if failed = p.addPort(t); failed != nil {
					p.detach(links)
					return
				}
			}
		}
	})
	if err != nil {
		return err
	}
	return failed
}

// Remove removes links and their packets. Afterwards their devices may be closed.
func (p *Plane) Remove(ctx context.Context, links []*Link) error {
	return p.runTask(ctx, func() { p.detach(links) })
}

func (p *Plane) detach(links []*Link) {
	for _, l := range links {
		p.removePort(l.pa)
		p.removePort(l.pb)
		for _, d := range []*direction{l.ab, l.ba} {
			p.queue.remove(d)
			d.active = false
			d.shaper.Clear(p.pool.put)
		}
	}
}

// LinkSetting is a change of a link; nil keeps a direction unchanged.
type LinkSetting struct {
	Link   *Link
	AB, BA *shaper.Params
}

// Set applies settings between two packets.
func (p *Plane) Set(ctx context.Context, settings []LinkSetting) error {
	return p.runTask(ctx, func() {
		now := p.now()
		for _, s := range settings {
			p.set(s.Link.ab, now, s.AB)
			p.set(s.Link.ba, now, s.BA)
		}
	})
}

// set runs in a task. No thread owns a direction then, so an active direction is in the queue.
func (p *Plane) set(d *direction, now int64, params *shaper.Params) {
	if params == nil {
		return
	}
	d.shaper.Set(now, params)
	d.account.Set(now, params.Quality)
	if due, departs, waits := d.shaper.NextDue(now); waits && d.active {
		p.queue.put(d, d.sendTime(due, departs))
	}
}

// statsBatch is the number of links read per task, about 10 us.
const statsBatch = 64

// Stats returns the counters and accounts of links.
func (p *Plane) Stats(ctx context.Context, links []*Link) ([]link.Stats, error) {
	stats := make([]link.Stats, len(links))
	snapshots := make([][2]account.Snapshot, min(statsBatch, len(links)))
	for at := 0; at < len(links); at += statsBatch {
		batch := links[at:min(at+statsBatch, len(links))]
		err := p.runTask(ctx, func() {
			now := p.now()
			for i, l := range batch {
				l.ab.observe(&snapshots[i][0], now)
				l.ba.observe(&snapshots[i][1], now)
			}
		})
		if err != nil {
			return nil, err
		}
		for i, l := range batch {
			s := l.Stats()
			s.AB.Account, s.BA.Account = snapshots[i][0].Account(), snapshots[i][1].Account()
			stats[at+i] = s
		}
	}
	return stats, nil
}

// observe runs in a task.
func (d *direction) observe(to *account.Snapshot, now int64) {
	waiting, flying := d.shaper.Backlog(now)
	d.account.Copy(to, waiting, flying)
}

// Stats returns the counters without accounts.
func (l *Link) Stats() link.Stats {
	s := link.Stats{ID: l.ID, AB: l.ab.counters(), BA: l.ba.counters()}
	if l.path != nil {
		s.Path = l.path.stats()
	}
	return s
}

func (d *direction) counters() link.Counters {
	return link.Counters{
		Bytes: d.bytes.Load(), Packets: d.packets.Load(),
		DroppedQueue: d.droppedQueue.Load(), DroppedLoss: d.droppedLoss.Load(),
		Late: d.late.Summary(),
	}
}
