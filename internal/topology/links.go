package topology

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"skerry/internal/base/unit"
	"skerry/internal/link"
)

// LinkID returns the ID of the unnamed link between two nodes.
func LinkID(a, b string) string { return a + "~" + b }

// pair is two nodes by index, the smaller first.
type pair struct{ a, b int }

// addLinks links the pairs that connect selects, and then applies the individual links.
func (b *builder) addLinks() {
	index := map[pair]int{}
	pairs := b.linkedPairs()
	var m *meshDraw
	if n := b.spec.Mesh.Links; n > 0 {
		if least := len(b.t.Nodes) - 1; n < least || n > maxLinks {
			b.fail("mesh.links", fmt.Sprintf("a mesh of %d links cannot connect %d nodes", n, len(b.t.Nodes)),
				fmt.Sprintf("give from %d to %d links", least, maxLinks))
			return
		}
		m = &meshDraw{random: rand.New(rand.NewPCG(max(b.spec.Mesh.Seed, 1), meshStream))}
		pairs = m.drawPairs(pairs, len(b.t.Nodes), n)
	}
	for _, p := range pairs {
		if len(index) == maxLinks {
			b.fail("", fmt.Sprintf("the topology has more than %d links", maxLinks), "connect it as a ring, or list individual links")
			return
		}
		from, to := b.t.Nodes[p.a], b.t.Nodes[p.b]
		ab, ok := b.siteQuality(from.Site, to.Site)
		if !ok {
			b.fail("", fmt.Sprintf("no latency between the sites %s and %s", from.Site, to.Site),
				"give matrix.latency, lat and lon of both sites, a link between them, or defaults.rtt")
			return
		}
		ba, _ := b.siteQuality(to.Site, from.Site)
		index[p] = len(b.t.Links)
		b.t.Links = append(b.t.Links, Link{ID: LinkID(from.Name, to.Name), A: from.Name, B: to.Name, AB: ab, BA: ba})
	}
	if m != nil {
		b.t.Links = append(b.t.Links, m.drawRedundant(b.t.Links)...)
	}
	for i, l := range b.spec.Links {
		b.applyLinkSpec(fmt.Sprintf("links[%d]", i), l, index)
	}
	b.numberFirst()
	for _, l := range b.t.Links {
		if len(b.problems) > 0 || !b.checkJitter("defaults.jitter", l) {
			return
		}
	}
}

// numberFirst renames the first link of a pair with several links to "A~B#1". "A~B" then means all links of the pair.
func (b *builder) numberFirst() {
	several := map[string]int{}
	for _, l := range b.t.Links {
		several[LinkID(min(l.A, l.B), max(l.A, l.B))]++
	}
	for i, l := range b.t.Links {
		if l.ID == LinkID(l.A, l.B) && several[LinkID(min(l.A, l.B), max(l.A, l.B))] > 1 {
			b.t.Links[i].ID = nthLinkID(l.A, l.B, 1)
		}
	}
}

// linkedPairs returns the pairs that connect selects. It omits pairs that have an individual link and no other source
// of a latency.
func (b *builder) linkedPairs() []pair {
	n := len(b.t.Nodes)
	var pairs []pair
	switch b.connectMode() {
	case "full":
		for i := range n {
			for j := i + 1; j < n && len(pairs) <= maxLinks; j++ {
				if _, ok := b.siteQuality(b.t.Nodes[i].Site, b.t.Nodes[j].Site); ok || !b.hasLinkSpec(i, j) {
					pairs = append(pairs, pair{i, j})
				}
			}
		}
	case "ring":
		for i := range n - 1 {
			pairs = append(pairs, pair{i, i + 1})
		}
		if n > 2 {
			pairs = append(pairs, pair{0, n - 1})
		}
	}
	return pairs
}

func (b *builder) connectMode() string {
	if b.spec.Connect != "" {
		return b.spec.Connect
	}
	if len(b.spec.Links) == 0 || b.latency != nil || b.spec.Defaults.Latency != nil || b.spec.Defaults.RTT != nil {
		return "full"
	}
	for _, s := range b.t.Sites {
		if s.Located {
			return "full"
		}
	}
	return "none"
}

// hasLinkSpec reports whether links has an entry for two nodes.
func (b *builder) hasLinkSpec(i, j int) bool {
	x, y := b.t.Nodes[i], b.t.Nodes[j]
	at := func(end string, n Node) bool { return end == n.Name || end == n.Site }
	for _, l := range b.spec.Links {
		if at(l.Between[0], x) && at(l.Between[1], y) || at(l.Between[0], y) && at(l.Between[1], x) {
			return true
		}
	}
	return false
}

// siteQuality returns the quality from one site to another, and whether their latency is known.
func (b *builder) siteQuality(from, to string) (link.Quality, bool) {
	if from == to {
		return b.t.Sites[b.sites[from]].Local, true
	}
	d := b.spec.Defaults
	q := d.QualitySpec.apply(link.Quality{})
	known := d.Latency != nil || d.RTT != nil
	if p, r := b.t.Sites[b.sites[from]], b.t.Sites[b.sites[to]]; p.Located && r.Located {
		q.Latency, known = propagationDelay(greatCircleKm(point{p.Lat, p.Lon}, point{r.Lat, r.Lon}), b.spec.Distance.detour()), true
	}
	if rtt, ok := b.latency.get(from, to); ok {
		q.Latency, known = rtt/2, true
	}
	if w, ok := b.bandwidth.get(from, to); ok {
		q.Bandwidth = w
	}
	return q, known
}

// applyLinkSpec applies an entry of links to all pairs of nodes that it names.
func (b *builder) applyLinkSpec(path string, l LinkSpec, index map[pair]int) {
	if len(l.Between) != 2 {
		b.fail(path+".between", "a link needs two nodes or sites", "write between: [A, B]")
		return
	}
	from, ok := b.findEnd(path, 0, l)
	to, ok2 := b.findEnd(path, 1, l)
	if !ok || !ok2 {
		return
	}
	for _, i := range from {
		for _, j := range to {
			if i == j {
				if len(from) == 1 && len(to) == 1 {
					b.fail(path+".between", fmt.Sprintf("both ends of the link are %s", l.Between[0]), "")
				}
				continue
			}
			b.applyToPair(path, l, i, j, index)
		}
	}
}

func (b *builder) applyToPair(path string, l LinkSpec, i, j int, index map[pair]int) {
	p := pair{min(i, j), max(i, j)}
	k, ok := index[p]
	x, y := b.t.Nodes[p.a], b.t.Nodes[p.b]
	id := LinkID(x.Name, y.Name)
	if l.Name != "" {
		ok, id = false, b.linkName(path, l, x, y)
	}
	if !ok {
		ab, known := b.siteQuality(x.Site, y.Site)
		ba, _ := b.siteQuality(y.Site, x.Site)
		if !known && !l.hasLatency() {
			b.fail(path, fmt.Sprintf("the link between %s and %s has no latency", x.Name, y.Name), "give it latency (one way) or rtt")
			return
		}
		k = len(b.t.Links)
		if l.Name == "" {
			index[p] = k
		}
		b.t.Links = append(b.t.Links, Link{ID: id, A: x.Name, B: y.Name, AB: ab, BA: ba})
	}
	li := &b.t.Links[k]
	li.AB, li.BA = l.Apply(li.AB, li.BA, i != p.a)
	b.checkJitter(path+".jitter", *li)
}

// checkJitter rejects a jitter above the maximum for the latency of a link.
func (b *builder) checkJitter(path string, l Link) (ok bool) {
	for _, q := range []link.Quality{l.AB, l.BA} {
		if most := q.MaxJitter(); q.Jitter > most {
			b.fail(path,
				fmt.Sprintf("jitter %v is too large for the latency %v of link %s", unit.Duration(q.Jitter), unit.Duration(q.Latency), l.ID),
				fmt.Sprintf("give at most %v for the distribution %s", unit.Duration(most), cmp.Or(q.Distribution, link.Normal)))
			return false
		}
	}
	return true
}

// linkName returns the ID of a named link. If an end is a site, the ID includes the two nodes, because the name then
// stands for several links.
func (b *builder) linkName(path string, l LinkSpec, x, y Node) string {
	b.checkName(path+".name", "link", l.Name)
	id := l.Name
	if l.Between[0] != x.Name && l.Between[0] != y.Name || l.Between[1] != x.Name && l.Between[1] != y.Name {
		id = l.Name + ":" + LinkID(x.Name, y.Name)
	}
	if len(id) > maxID {
		b.fail(path+".name", fmt.Sprintf("link ID %q has %d bytes, at most %d are allowed", id, len(id), maxID), "shorten the name")
	}
	if slices.ContainsFunc(b.t.Links, func(o Link) bool { return o.ID == id }) {
		b.fail(path+".name", fmt.Sprintf("duplicate link ID %q", id), "give each link a different name")
	}
	return id
}

// findEnd returns the nodes that one end of a link entry names.
func (b *builder) findEnd(path string, k int, l LinkSpec) ([]int, bool) {
	name := l.Between[k]
	nodes := b.t.findNodes(name)
	if nodes == nil {
		var known []string
		for _, n := range b.t.Nodes {
			known = append(known, n.Name)
		}
		b.fail(fmt.Sprintf("%s.between[%d]", path, k), fmt.Sprintf("%q is neither a node nor a site with nodes", name),
			b.suggestName(name, append(known, b.siteNames()...)))
	}
	return nodes, nodes != nil
}

// findNodes returns the index of the node called name, or else the indices of all nodes at the site called name.
func (t Topology) findNodes(name string) []int {
	var at []int
	for i, n := range t.Nodes {
		if n.Name == name {
			return []int{i}
		}
		if n.Site == name {
			at = append(at, i)
		}
	}
	return at
}

func (l LinkSpec) hasLatency() bool {
	has := func(q *QualitySpec) bool { return q != nil && (q.Latency != nil || q.RTT != nil) }
	return has(&l.QualitySpec) || has(l.Forward) && has(l.Back)
}

// Apply applies the spec to both directions of a link. reversed means that the link's A is the second end of the spec.
func (l LinkSpec) Apply(ab, ba link.Quality, reversed bool) (link.Quality, link.Quality) {
	forward, back := l.Forward, l.Back
	if reversed {
		forward, back = back, forward
	}
	ab, ba = l.QualitySpec.apply(ab), l.QualitySpec.apply(ba)
	if forward != nil {
		ab = forward.apply(ab)
	}
	if back != nil {
		ba = back.apply(ba)
	}
	return ab, ba
}

// apply overrides the fields that the spec sets.
func (s QualitySpec) apply(q link.Quality) link.Quality {
	if s.Latency != nil {
		q.Latency = time.Duration(*s.Latency)
	}
	if s.RTT != nil {
		q.Latency = time.Duration(*s.RTT) / 2
	}
	if s.Bandwidth != nil {
		q.Bandwidth = int64(*s.Bandwidth)
	}
	if s.Jitter != nil {
		q.Jitter = time.Duration(*s.Jitter)
	}
	if s.Distribution != "" {
		q.Distribution = s.Distribution
	}
	if s.Loss != nil {
		q = s.Loss.Apply(q)
	}
	if s.Duplicate != nil {
		q.Duplicate = float64(*s.Duplicate)
	}
	if s.Reorder != nil {
		q.Reorder = float64(*s.Reorder)
	}
	if s.Corrupt != nil {
		q.Corrupt = float64(*s.Corrupt)
	}
	if s.Queue != nil {
		q.Queue = int64(*s.Queue)
	}
	return q
}

func (d DistanceSpec) detour() float64 {
	if d.Detour == nil {
		return defaultDetour
	}
	return *d.Detour
}
