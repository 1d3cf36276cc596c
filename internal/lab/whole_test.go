package lab

import (
	"errors"
	"testing"

	"skerry/internal/base/advice"
	"skerry/internal/topology"
	"skerry/internal/topology/flavor"
)

// What a node cannot be, or have, that is a machine itself is refused with the reason.
func TestWholly(t *testing.T) {
	plain := func() topology.Topology {
		return topology.Topology{Nodes: []topology.Node{{Name: "a", Role: topology.Client}, {Name: "b"}, {Name: "c"}}}
	}
	for name, tt := range map[string]struct {
		change  func(*topology.Topology)
		whole   []string
		refused bool
	}{
		"nothing of the kind":   {func(*topology.Topology) {}, []string{"a", "b", "c"}, false},
		"an overlay":            {func(t *topology.Topology) { t.Overlay.Kind = "babel" }, []string{"b"}, true},
		"the absence of one":    {func(t *topology.Topology) { t.Overlay.Kind = topology.Direct }, []string{"b"}, false},
		"a service":             {func(t *topology.Topology) { t.Service.Kind = topology.HostPort }, []string{"b"}, true},
		"a limit":               {func(t *topology.Topology) { t.Nodes[1].CPU = 1 }, []string{"b"}, true},
		"a limit of memory":     {func(t *topology.Topology) { t.Nodes[1].Memory = 1 }, []string{"b"}, true},
		"a flavor":              {func(t *topology.Topology) { t.Nodes[1].Flavor = &flavor.Flavor{} }, []string{"b"}, true},
		"another node's limit":  {func(t *topology.Topology) { t.Nodes[2].CPU = 1 }, []string{"b"}, false},
		"a volume":              {func(t *topology.Topology) { t.Volume.Kind = topology.LoopVolume }, []string{"b"}, true},
		"a volume for others":   {func(t *topology.Topology) { t.Volume.Kind = topology.LoopVolume }, []string{"a"}, false},
		"settings of TCP":       {func(t *topology.Topology) { t.TCP = map[string]string{"ecn": "1"} }, []string{"b"}, true},
		"no whole machine":      {func(t *topology.Topology) { t.Overlay.Kind = "babel" }, nil, false},
		"an overlay and limits": {func(t *topology.Topology) { t.Overlay.Kind = "babel"; t.Nodes[1].CPU = 1 }, []string{"b"}, true},
	} {
		cloud := plain()
		tt.change(&cloud)
		err := Wholly(cloud, tt.whole)
		if (err != nil) != tt.refused || err != nil && (!errors.Is(err, ErrInvalid) || advice.Of(err) == "") {
			t.Errorf("%s: %v (%s)", name, err, advice.Of(err))
		}
	}
}
