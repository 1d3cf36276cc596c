package rebalance

import (
	"fmt"
	"math"
	"strings"
	"time"

	"skerry/systems/metadata"
)

// Move is a directory to move to another server.
type Move struct {
	Path string // in the shared tree
	Own  string // in the server's own tree
	To   string // target server
	Rate float64
	// Here, There and Mean are the loads, in operations/s, of the two servers and the mean of all servers.
	Here, There, Mean float64
}

type history struct {
	over int       // consecutive rounds with too much load
	rest time.Time // no moves until then
	// pinned has subtrees that stay until a time, with everything in them. large has directories that are ignored until a
	// time. Keys are paths in the server's own tree.
	pinned, large map[string]time.Time
}

// choose returns the directory to move, or why none moves. It depends only on its arguments and changes only h.
func (p Policy) choose(now time.Time, h *history, v View) (m Move, why string) {
	at := v.mountPoints()
	p.recordArrivals(now, h, v, at)
	here, mean := v.Servers[v.Self].Load.Rate, v.Mean()
	least, there := v.leastLoaded()
	switch {
	case len(v.Servers) < 2:
		h.over = 0
		return m, "no other server is reachable"
	case here < p.Floor:
		h.over = 0
		return m, fmt.Sprintf("load of %.0f operations/s is below the floor", here)
	case here < p.Factor*mean:
		h.over = 0
		return m, fmt.Sprintf("%.0f operations/s, of %.0f on average", here, mean)
	}
	h.over++
	switch {
	case now.Before(h.rest):
		return m, "resting after the last move"
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
		return m, "no eligible directory would improve the balance"
	}
	return m, ""
}

// minShare is the minimum share of a server's load of a moved directory.
const minShare = 0.02

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
			here[own] = until // unreachable together with the server of its virtual directory
		}
	}
	h.pinned = here
}

func (h *history) isPinned(now time.Time, own string) bool {
	for dir, until := range h.pinned {
		if metadata.Under(own, dir) && now.Before(until) {
			return true
		}
	}
	return now.Before(h.large[own])
}

func (v View) movedAway(own string) bool {
	for path := range v.Servers[v.Self].Subtrees {
		if metadata.Under(own, path) {
			return true
		}
	}
	return false
}

type candidate struct {
	Directory
	want float64 // operations/s that should move
}

// similarity is the difference, as a fraction of the wanted load, below which two directories count as equal.
const similarity = 0.2

// better reports whether moving c is better than moving than. The better directory's load is closer to the wanted load.
// Among similar loads, the better one is closer to the root or is a whole subtree, then the hotter one.
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

func (c candidate) depth() int {
	_, rest := splitSubtree(c.Path)
	return strings.Count(rest, "/")
}
