package topology

import (
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"time"

	"skerry/internal/base/suggest"
	"skerry/internal/link"
)

// MeshSpec is a random mesh of links. The mesh is connected for every seed.
type MeshSpec struct {
	// Links is the total number of links. With fewer links than pairs of nodes, the linked pairs are drawn at random.
	// Otherwise every pair has a first link with the quality from matrix, coordinates and defaults. The remaining links
	// join random pairs, with latency and bandwidth drawn uniformly from the range of the first links.
	Links int `yaml:"links" json:"links,omitempty" jsonschema:"minimum=1"`
	// Seed of the random draw. The same seed gives the same mesh. Default: 1.
	Seed uint64 `yaml:"seed" json:"seed,omitempty"`
}

// meshStream separates the random stream of meshes from other uses of the same seed.
const meshStream = 0x6d657368

// meshDraw draws which pairs have a first link, and the redundant links that come on top.
type meshDraw struct {
	random *rand.Rand
	spare  int // links left after every pair has one
}

// drawPairs returns all pairs if links suffice. Otherwise it returns a random spanning tree and random further pairs.
func (m *meshDraw) drawPairs(pairs []pair, nodes, links int) []pair {
	if links >= len(pairs) {
		m.spare = links - len(pairs)
		return pairs
	}
	order := m.random.Perm(len(pairs))
	chosen := make([]bool, len(pairs))
	joined := newForest(nodes)
	left := links
	for _, i := range order {
		if joined.unite(pairs[i].a, pairs[i].b) {
			chosen[i], left = true, left-1
		}
	}
	for _, i := range order {
		if !chosen[i] && left > 0 {
			chosen[i], left = true, left-1
		}
	}
	var drawn []pair
	for i, p := range pairs {
		if chosen[i] {
			drawn = append(drawn, p)
		}
	}
	return drawn
}

// drawRedundant draws the links beyond the first of each pair.
func (m *meshDraw) drawRedundant(first []Link) []Link {
	if m.spare == 0 {
		return nil
	}
	latency, bandwidth := rangeOf(first)
	count := make([]int, len(first))
	extra := make([]Link, m.spare)
	for k := range extra {
		i := m.random.IntN(len(first))
		count[i]++
		l := first[i]
		l.ID = nthLinkID(l.A, l.B, count[i]+1)
		l.AB.Latency = time.Duration(latency.draw(m.random))
		l.BA.Latency = l.AB.Latency
		l.AB.Bandwidth, l.BA.Bandwidth = bandwidth.draw(m.random), bandwidth.draw(m.random)
		extra[k] = l
	}
	return extra
}

// nthLinkID returns the ID of the n-th of several links between two nodes, counted from 1.
func nthLinkID(a, b string, n int) string { return fmt.Sprintf("%s#%d", LinkID(a, b), n) }

// span is a range of values, both ends included.
type span struct{ min, max int64 }

func (s *span) add(v int64, first bool) {
	if first || v < s.min {
		s.min = v
	}
	if first || v > s.max {
		s.max = v
	}
}

func (s span) draw(r *rand.Rand) int64 { return s.min + r.Int64N(s.max-s.min+1) }

// rangeOf returns the ranges of one-way latency in ns and of bandwidth in bit/s over all directions of links.
func rangeOf(links []Link) (latency, bandwidth span) {
	for i, l := range links {
		for j, q := range []link.Quality{l.AB, l.BA} {
			latency.add(int64(q.Latency), i+j == 0)
			bandwidth.add(q.Bandwidth, i+j == 0)
		}
	}
	return latency, bandwidth
}

// forest holds disjoint sets of connected nodes, with path halving.
type forest []int

func newForest(n int) forest {
	f := make(forest, n)
	for i := range f {
		f[i] = i
	}
	return f
}

func (f forest) root(i int) int {
	for f[i] != i {
		f[i] = f[f[i]]
		i = f[i]
	}
	return i
}

// unite joins the sets of a and b. It returns false if they were already one set.
func (f forest) unite(a, b int) bool {
	a, b = f.root(a), f.root(b)
	f[a] = b
	return a != b
}

// IsPattern reports whether name can only be a link pattern: a pair of ends, or a name with wildcards.
func IsPattern(name string) bool { return strings.ContainsAny(name, "~*?[") }

// Match reports whether a pattern matches a link in the direction from A to B, or from B to A. A pattern is one of:
//   - the ID of a link
//   - "X~Y" in either order, for all links of a pair
//   - "X~Y#1" or "X~Y#spare", for one link of a pair by its number or name
//   - a node, for all its links, seen from that node
//
// X, Y and the part after # may contain * and ?.
func Match(pattern, id, a, b string) (forward, backward bool, err error) {
	if pattern == id {
		return true, false, nil
	}
	ends, which, single := strings.Cut(pattern, "#")
	left, right, pair := strings.Cut(ends, "~")
	if !pair {
		right = "*"
	}
	match := func(pattern, name string) (is bool) {
		if is, matchErr := path.Match(pattern, name); matchErr == nil {
			return is
		}
		err = fmt.Errorf("pattern %q: %w", pattern, path.ErrBadPattern)
		return false
	}
	of := !single || match(which, linkSuffix(id, a, b))
	there, back := match(left, a) && match(right, b), match(left, b) && match(right, a)
	return there && of, back && of && !(there && of), err
}

// linkSuffix returns the number or name of a link among the links of its pair.
func linkSuffix(id, a, b string) string {
	if id == LinkID(a, b) {
		return "1"
	}
	return strings.TrimPrefix(id, LinkID(a, b)+"#")
}

// NearestLink returns the link or node with the nearest spelling; "" for none.
func NearestLink(pattern string, links []Link) string {
	var known []string
	for _, l := range links {
		known = append(known, l.ID, l.B+"~"+l.A, l.A, l.B)
	}
	return suggest.Nearest(pattern, known)
}
