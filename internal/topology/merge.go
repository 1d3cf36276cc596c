package topology

import (
	"reflect"
	"slices"
)

// merge puts what over says over s: sites and nodes by name, links after those of s.
func (s Spec) merge(over Spec) Spec {
	s.From = over.From
	pick(&s.Name, over.Name)
	pick(&s.Connect, over.Connect)
	pick(&s.Mesh, over.Mesh)
	pick(&s.Encryption, over.Encryption)
	pick(&s.Volumes, over.Volumes)
	if !reflect.ValueOf(over.Overlay).IsZero() {
		s.Overlay = over.Overlay
	}
	if !reflect.ValueOf(over.Service).IsZero() {
		s.Service = over.Service
	}
	pick(&s.Matrix.Latency, over.Matrix.Latency)
	pick(&s.Matrix.Average, over.Matrix.Average)
	pick(&s.Matrix.Bandwidth, over.Matrix.Bandwidth)
	pick(&s.Distance.Detour, over.Distance.Detour)
	s.Links = append(slices.Clone(s.Links), over.Links...)
	s.Sites = slices.Clone(s.Sites)
	for _, o := range over.Sites {
		i := slices.IndexFunc(s.Sites, func(x SiteSpec) bool { return x.Name == o.Name })
		if i < 0 {
			s.Sites = append(s.Sites, o)
			continue
		}
		pick(&s.Sites[i].Lat, o.Lat)
		pick(&s.Sites[i].Lon, o.Lon)
		pick(&s.Sites[i].Nodes, o.Nodes)
	}
	s.Nodes = slices.Clone(s.Nodes)
	for _, o := range over.Nodes {
		i := slices.IndexFunc(s.Nodes, func(x NodeSpec) bool { return x.Name == o.Name })
		if i < 0 {
			s.Nodes = append(s.Nodes, o)
			continue
		}
		pick(&s.Nodes[i].Site, o.Site)
		pick(&s.Nodes[i].Role, o.Role)
		pick(&s.Nodes[i].CPU, o.CPU)
		pick(&s.Nodes[i].Memory, o.Memory)
		pick(&s.Nodes[i].Flavor, o.Flavor)
	}
	d, o := &s.Defaults, over.Defaults
	if o.Latency != nil || o.RTT != nil {
		d.Latency, d.RTT = o.Latency, o.RTT
	}
	pick(&d.Bandwidth, o.Bandwidth)
	pick(&d.Jitter, o.Jitter)
	pick(&d.Distribution, o.Distribution)
	pick(&d.Loss, o.Loss)
	pick(&d.Duplicate, o.Duplicate)
	pick(&d.Reorder, o.Reorder)
	pick(&d.Corrupt, o.Corrupt)
	pick(&d.Queue, o.Queue)
	pick(&d.SiteRTT, o.SiteRTT)
	pick(&d.SiteBandwidth, o.SiteBandwidth)
	pick(&d.CPU, o.CPU)
	pick(&d.Memory, o.Memory)
	pick(&d.Flavor, o.Flavor)
	d.TCP = d.TCP.merge(o.TCP)
	return s
}

// pick takes what was given over what was there.
func pick[T comparable](to *T, given T) {
	var none T
	if given != none {
		*to = given
	}
}
