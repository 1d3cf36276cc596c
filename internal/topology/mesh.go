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

// MeshSpec is a random mesh of links between the nodes, connected whatever the seed.
type MeshSpec struct {
	// Links is how many there are in all. With at least one for each pair of nodes, every
	// pair has a first link as matrix, coordinates and defaults have it, and the rest are
	// redundant links between pairs drawn at random, their latency and bandwidth drawn
	// uniformly from the range of the first ones. With fewer, the pairs that are linked are
	// drawn.
	Links int `yaml:"links" json:"links,omitempty" jsonschema:"minimum=1"`
	// Seed of the draw, 1 where it is left out: the same seed gives the same mesh.
	Seed uint64 `yaml:"seed" json:"seed,omitempty"`
}

// meshStream keeps the draw of meshes apart from what else a seed is used for.
const meshStream = 0x6d657368

// meshDraw draws which pairs have a first link, and the redundant links that come on top.
type meshDraw struct {
	random *rand.Rand
	spare  int // links still to be given out once every pair has one
}

// drawPairs picks pairs for the mesh: all of them when there are links enough, else a random
// spanning tree and as many others as there are links left.
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

// drawRedundant draws the links that come on top of the first ones.
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

// nthLinkID is the name of the n-th of several links between two nodes, counted from 1.
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

// rangeOf is what the directions of links span: one-way latency in ns, bandwidth in
// bit/s.
func rangeOf(links []Link) (latency, bandwidth span) {
	for i, l := range links {
		for j, q := range []link.Quality{l.AB, l.BA} {
			latency.add(int64(q.Latency), i+j == 0)
			bandwidth.add(q.Bandwidth, i+j == 0)
		}
	}
	return latency, bandwidth
}

// forest tells which nodes are joined: disjoint sets with path halving.
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

// unite joins the sets of a and b; false when they are one already.
func (f forest) unite(a, b int) bool {
	a, b = f.root(a), f.root(b)
	f[a] = b
	return a != b
}

// IsPattern tells whether a name can only mean links: a pair of ends, or ends with * and ?.
func IsPattern(name string) bool { return strings.ContainsAny(name, "~*?[") }

// Match tells whether a pattern names a link, from A to B or from B to A. A pattern is the ID of
// a link; a pair "X~Y" with either end first, which means all links between the two; one of a
// pair's links, "X~Y#1" by its number or "X~Y#spare" by its name; or a node, which means all its
// links, seen from it. X, Y and what follows # may hold * and ?.
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

// linkSuffix distinguishes a link from the others between the same nodes: its number, or its name.
func linkSuffix(id, a, b string) string {
	if id == LinkID(a, b) {
		return "1"
	}
	return strings.TrimPrefix(id, LinkID(a, b)+"#")
}

// NearestLink is the name of a link, or of a node, that somebody may have meant; "" for none.
func NearestLink(pattern string, links []Link) string {
	var known []string
	for _, l := range links {
		known = append(known, l.ID, l.B+"~"+l.A, l.A, l.B)
	}
	return suggest.Nearest(pattern, known)
}
