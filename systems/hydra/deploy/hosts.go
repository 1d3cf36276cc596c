package deploy

import (
	"fmt"

	"skerry/internal/base/advice"
	"skerry/internal/machine/host"
)

// cloudNodes is how many nodes a site has at least that is a cloud: members, and an edge.
const cloudNodes = 3

// OnHosts lays out a deployment on the nodes of a lab: every site with three nodes or more is a
// cloud, whose last node is its edge and whose others are members; the first node of the
// first other site is the witness, and the last one there has the DNS server.
func OnHosts(hosts []host.Host) (Layout, error) {
	var order []string
	sites := map[string][]host.Host{}
	for _, h := range hosts {
		if _, seen := sites[h.Site()]; !seen {
			order = append(order, h.Site())
		}
		sites[h.Site()] = append(sites[h.Site()], h)
	}
	var layout Layout
	for _, name := range order {
		nodes := sites[name]
		switch {
		case len(nodes) >= cloudNodes:
			last := len(nodes) - 1
			layout.Clouds = append(layout.Clouds, Cloud{Name: name, Members: nodes[:last], Edge: nodes[last]})
		case layout.Witness == nil:
			layout.Witness, layout.Names = nodes[0], nodes[len(nodes)-1]
		}
	}
	if len(layout.Clouds) == 0 {
		return layout, advice.With(fmt.Errorf("%w: no site of the lab has %d nodes", ErrLayout, cloudNodes), "see topologies/two-clouds.yaml")
	}
	return layout, nil
}
