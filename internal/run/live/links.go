package live

import (
	"maps"
	"slices"
	"time"

	"skerry/internal/link"
)

// NewLink is a link with its qualities.
func NewLink(id, a, b string, ab, ba link.Quality) Link {
	return Link{ID: id, A: a, B: b, AB: way(ab), BA: way(ba)}
}

func way(q link.Quality) Way {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return Way{LatencyMS: ms(q.Latency), JitterMS: ms(q.Jitter), Loss: q.LossShare(), Bandwidth: q.Bandwidth, Down: q.Down}
}

// Links tells that links were changed.
func (f *Feed) Links(changes []link.Change) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state.Cloud == nil {
		return
	}
	for _, c := range changes {
		i, ok := f.byLink[c.ID]
		if !ok {
			continue
		}
		l := &f.state.Cloud.Links[i]
		if c.AB != nil {
			l.AB = way(*c.AB)
		}
		if c.BA != nil {
			l.BA = way(*c.BA)
		}
		l.Changed = f.base != nil && (l.AB != f.base[i].AB || l.BA != f.base[i].BA)
		f.dirty[i] = true
	}
	f.tellLinks()
}

// Carrier tells that the devices of a link were taken down or up.
func (f *Feed) Carrier(id string, up bool) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if i, ok := f.byLink[id]; ok {
		f.state.Cloud.Links[i].CarrierDown = !up
		f.dirty[i] = true
		f.tellLinks()
	}
}

// Measured tells the median round trips, in milliseconds, that links were measured with.
func (f *Feed) Measured(rtt map[string]float64) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, ms := range rtt {
		if i, ok := f.byLink[id]; ok {
			f.state.Cloud.Links[i].RTTMS = &ms
			f.dirty[i] = true
		}
	}
	f.tellLinks()
}

func (f *Feed) flushLinks() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tellLinks()
}

// tellLinks tells of those that changed, unless it did a moment ago: then the next second will.
func (f *Feed) tellLinks() {
	if len(f.dirty) == 0 || f.over || time.Since(f.toldAt) < linksAtMost {
		return
	}
	list := make([]Link, 0, len(f.dirty))
	for _, i := range slices.Sorted(maps.Keys(f.dirty)) {
		list = append(list, f.state.Cloud.Links[i])
	}
	clear(f.dirty)
	f.toldAt = time.Now()
	f.say(KindLinks, list)
}
