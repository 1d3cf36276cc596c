package trial

import (
	"sync"
	"time"

	"skerry/internal/link"
	"skerry/internal/record"
)

// lately is how far back it goes what links carried just before an event: long enough that a link with few
// operations has some, and shorter than any event's effect on the one after it.
const lately = 5 * time.Second

// carriage remembers what links had carried at some moments of the last seconds.
type carriage struct {
	mu   sync.Mutex
	read []carriedAt // the oldest first
}

// carriedAt are bytes by link, both directions together, and of all links.
type carriedAt struct {
	at    time.Time
	bytes map[string]uint64
	all   uint64
}

// add takes a reading of all links, and forgets those that are too old.
func (c *carriage) add(at time.Time, links []link.Stats) {
	next := carriedAt{at: at, bytes: make(map[string]uint64, len(links))}
	for _, s := range links {
		n := s.AB.Bytes + s.BA.Bytes
		next.bytes[s.ID] = n
		next.all += n
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = append(c.read, next)
	for len(c.read) > 2 && at.Sub(c.read[1].at) >= lately {
		c.read = c.read[1:]
	}
}

// of is what some links carried between the oldest reading and the newest; nil while there is only one.
func (c *carriage) of(ids []string) *record.Carried {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.read) < 2 {
		return nil
	}
	first, last := c.read[0], c.read[len(c.read)-1]
	took := last.at.Sub(first.at).Seconds()
	if took <= 0 {
		return nil
	}
	n := uint64(0)
	for _, id := range ids {
		n += last.bytes[id] - first.bytes[id]
	}
	out := record.Carried{Rate: float64(n) / took}
	if all := last.all - first.all; all > 0 {
		out.Share = float64(n) / float64(all)
	}
	return &out
}
