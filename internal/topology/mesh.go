package topology

import (
	"fmt"
	"math/rand/v2"
	"time"

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

// mesh draws which pairs have a first link, and the redundant links that come on top.
type mesh struct {
	random *rand.Rand
	spare  int // links still to be given out once every pair has one
}

// draw picks pairs for the mesh: all of them when there are links enough, else a random
// spanning tree and as many others as there are links left.
func (m *mesh) draw(pairs []pair, nodes, links int) []pair {
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

// redundant draws the links that come on top of the first ones.
func (m *mesh) redundant(first []Link) []Link {
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
		l.ID = NthID(l.A, l.B, count[i]+1)
		l.AB.Latency = time.Duration(latency.draw(m.random))
		l.BA.Latency = l.AB.Latency
		l.AB.Bandwidth, l.BA.Bandwidth = bandwidth.draw(m.random), bandwidth.draw(m.random)
		extra[k] = l
	}
	return extra
}

// NthID is the name of the n-th of several links between two nodes, counted from 1.
func NthID(a, b string, n int) string { return fmt.Sprintf("%s#%d", ID(a, b), n) }

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
