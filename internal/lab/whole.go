package lab

import (
	"fmt"
	"slices"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/topology"
)

// Wholly says why nodes of a topology cannot be a machine each, with its own network, disk and kernel; nil
// when they can.
func Wholly(t topology.Topology, nodes []string) error {
	if len(nodes) == 0 {
		return nil
	}
	names := strings.Join(nodes, ", ")
	switch {
	case t.Overlay.Routed():
		return cannot(names, "overlay: "+t.Overlay.Kind, "daemons would change the routes of the machine's own network")
	case t.Service.Enabled():
		return cannot(names, "service: "+t.Service.Kind, "it takes bridges and rules in a network of the node's own")
	}
	if len(t.TCP) > 0 {
		return cannot(names, "defaults: {tcp: ...}", "it has the machine's own settings")
	}
	for _, n := range t.Nodes {
		if !slices.Contains(nodes, n.Name) {
			continue
		}
		switch {
		case n.Flavor != nil:
			return cannot(n.Name, "a flavor", "it has what the machine has")
		case n.CPU > 0 || n.Memory > 0:
			return cannot(n.Name, "a limit of cpu or memory", "it has what the machine has")
		case t.Volume.Enabled() && n.Role != topology.Client:
			return cannot(n.Name, "volumes: "+t.Volume.Kind, "its directory is on the machine's own disk")
		}
	}
	return nil
}

func cannot(nodes, what, why string) error {
	err := fmt.Errorf("%w: %s cannot be a whole machine with %s: %s", ErrInvalid, nodes, what, why)
	return advice.With(err, "leave that out, or whole: true of the machine")
}
