package webdata

import (
	"cmp"
	"slices"
	"time"

	"skerry/internal/record"
	"skerry/internal/report/series"
	"skerry/internal/topology"
)

// cloudOf is the map of a trial. Round trips are what was set in the trial where its links were
// probed, of real links what was measured; else those of the topology.
func cloudOf(t *topology.Topology, links []record.LinkFidelity, most int) *Cloud {
	if t == nil {
		return nil
	}
	c := &Cloud{Sites: []Site{}, Nodes: []Node{}, Links: []CloudLink{}}
	site, node, set := map[string]int{}, map[string]int{}, map[string]float64{}
	for i, s := range t.Sites {
		site[s.Name] = i
		c.Sites = append(c.Sites, Site{s.Name, series.Number(s.Lat), series.Number(s.Lon), s.Located})
	}
	for i, n := range t.Nodes {
		node[n.Name] = i
		c.Nodes = append(c.Nodes, Node{n.Name, site[n.Site], string(n.Role)})
	}
	for _, l := range links {
		set[l.ID] = l.SetRTTMS
		if l.Real {
			set[l.ID] = l.RTTMS
		}
	}
	for _, l := range t.Links {
		rtt, ok := set[l.ID]
		if !ok {
			rtt = float64(l.AB.Latency+l.BA.Latency) / float64(time.Millisecond)
		}
		c.Links = append(c.Links, CloudLink{l.ID, node[l.A], node[l.B], series.Number(rtt), least(l.AB.Bandwidth, l.BA.Bandwidth)})
	}
	// Links within a site are not drawn; the nearest tell the most of the others.
	if c.Left = len(c.Links) - most; c.Left > 0 {
		slices.SortStableFunc(c.Links, func(a, b CloudLink) int { return cmp.Compare(a.RTTMS, b.RTTMS) })
		c.Links = c.Links[:most]
	}
	c.Left = max(0, c.Left)
	return c
}

// least is the smaller bandwidth, where 0 is none.
func least(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// trafficOf keeps the pairs that exchanged the most.
func trafficOf(pairs []record.PairTraffic, most int) *Traffic {
	if len(pairs) == 0 {
		return nil
	}
	t := &Traffic{Left: max(0, len(pairs)-most)}
	if t.Left > 0 {
		pairs = slices.Clone(pairs)
		slices.SortStableFunc(pairs, func(a, b record.PairTraffic) int { return cmp.Compare(b.Bytes, a.Bytes) })
		pairs = pairs[:most]
	}
	index := map[string]int{}
	place := func(name string) int {
		i, ok := index[name]
		if !ok {
			i = len(t.Nodes)
			index[name] = i
			t.Nodes = append(t.Nodes, name)
		}
		return i
	}
	for _, p := range pairs {
		t.From, t.To, t.Bytes = append(t.From, place(p.From)), append(t.To, place(p.To)), append(t.Bytes, p.Bytes)
	}
	return t
}
