package rebalance

import (
	"fmt"
	"math"
	"strings"
	"time"

	"skerry/systems/metadata"
)

// Move is a directory that is to go to another server.
type Move struct {
	Path string // of the whole tree
	Own  string // of the server's own
	To   string // the server
	Rate float64
	// Here, There and Mean are the operations/s of the two servers, and of all on average.
	Here, There, Mean float64
}

// history is what a balancer knows of the rounds before.
type history struct {
	over int       // rounds behind each other in which the server had too much
	rest time.Time // until then nothing is given away
	// stays are subtrees that stay until then with all in them, by path of the server's own
	// tree; large are directories that are not looked at until then.
	pinned, large map[string]time.Time
}

// choose is one round: what is to be given away, or why nothing is. It depends on nothing
// but what it is given, and changes the history only.
func (p Policy) choose(now time.Time, h *history, v View) (m Move, why string) {
	at := v.mountPoints()
	p.recordArrivals(now, h, v, at)
	here, mean := v.Servers[v.Self].Load.Rate, v.Mean()
	least, there := v.leastLoaded()
	switch {
	case len(v.Servers) < 2:
		h.over = 0
		return m, "no other server is in reach"
	case here < p.Floor:
		h.over = 0
		return m, fmt.Sprintf("%.0f operations/s are not worth a move", here)
	case here < p.Factor*mean:
		h.over = 0
		return m, fmt.Sprintf("%.0f operations/s, of %.0f on average", here, mean)
	}
	h.over++
	switch {
	case now.Before(h.rest):
		return m, "the last move is too recent"
	case h.over < p.Rounds:
		return m, fmt.Sprintf("%.0f operations/s, of %.0f on average, for %d rounds of %d", here, mean, h.over, p.Rounds)
	}
	m = Move{To: least, Here: here, There: there, Mean: mean}
	var best candidate
	for _, d := range v.Servers[v.Self].Load.Directories {
		c := candidate{Directory: d, want: (here - there) / 2}
		if d.Rate < minShare*here || here-there-d.Rate < p.Margin*here || h.isPinned(now, d.Path) || v.movedAway(d.Path) {
			continue
		}
		path, ok := v.globalPath(v.Self, d.Path, at)
		if ok && (best.Path == "" || c.better(best)) {
			best, m.Path, m.Own, m.Rate = c, path, d.Path, d.Rate
		}
	}
	if best.Path == "" {
		return m, "no directory that may go would make it better"
	}
	return m, ""
}

// minShare is the least part of a server's operations/s for which a directory is moved.
const minShare = 0.02

// recordArrivals notes subtrees that have come to the server, and has them stay.
func (p Policy) recordArrivals(now time.Time, h *history, v View, at map[string]mountPoint) {
	here := make(map[string]time.Time)
	for owner := range at {
		own, ok := strings.CutPrefix(owner, v.Self+":")
		if !ok {
			continue
		}
		until, known := h.pinned[own]
		if !known {
			until = now.Add(p.Stay)
		}
		here[own] = until
	}
	for own, until := range h.pinned {
		if until.After(now) {
			here[own] = until // out of sight, with the server that has its virtual directory
		}
	}
	h.pinned = here
}

// isPinned tells whether a directory is in one that stays.
func (h *history) isPinned(now time.Time, own string) bool {
	for dir, until := range h.pinned {
		if metadata.Under(own, dir) && now.Before(until) {
			return true
		}
	}
	return now.Before(h.large[own])
}

// movedAway tells whether a directory of the server's is on another one: what is counted of it
// is of before.
func (v View) movedAway(own string) bool {
	for path := range v.Servers[v.Self].Subtrees {
		if metadata.Under(own, path) {
			return true
		}
	}
	return false
}

// candidate is a directory that may go.
type candidate struct {
	Directory
	want float64 // operations/s that would best go
}

// similarity is how much of what is wanted two directories may differ by, and count as alike.
const similarity = 0.2

// better tells whether a directory is rather given away than another: the one that has
// nearer to what is wanted; of two that are alike the one that is a whole subtree or is
// higher up, then the hotter one.
func (c candidate) better(than candidate) bool {
	mine, other := math.Abs(c.Rate-c.want), math.Abs(than.Rate-than.want)
	if math.Abs(mine-other) > similarity*c.want {
		return mine < other
	}
	if a, b := c.depth(), than.depth(); a != b {
		return a < b
	}
	if c.Rate != than.Rate {
		return c.Rate > than.Rate
	}
	return c.Path < than.Path
}

// depth is how far a directory is below the root, or below that of its subtree.
func (c candidate) depth() int {
	_, rest := splitSubtree(c.Path)
	return strings.Count(rest, "/")
}
