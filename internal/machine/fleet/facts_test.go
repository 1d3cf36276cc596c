package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/machine"
)

// Settings that differ between machines are listed with the machines' names.
func TestMergedSettings(t *testing.T) {
	on := func(name, control string) machine.Facts {
		return machine.Facts{Nodes: []machine.NodeFacts{{Machine: name}},
			Settings: map[string]string{"net.ipv4.tcp_congestion_control": control, "net.ipv4.tcp_ecn": "2"}}
	}
	for want, all := range map[string][]machine.Facts{
		"cubic":                {on("a", "cubic"), on("b", "cubic"), {}},
		"cubic on a, bbr on b": {on("a", "cubic"), {}, on("b", "bbr")},
	} {
		got := mergeFacts(all).Settings
		if diff := cmp.Diff(map[string]string{"net.ipv4.tcp_congestion_control": want, "net.ipv4.tcp_ecn": "2"}, got); diff != "" {
			t.Error(diff)
		}
	}
}
