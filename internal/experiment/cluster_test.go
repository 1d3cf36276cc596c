package experiment

import (
	"strings"
	"testing"
)

// Settings of an emulated cloud are rejected on an external cluster, where they would have no effect.
func TestClusterMistakes(t *testing.T) {
	const valid = "name: x\ndatabase: {name: redis, cluster: {servers: [\"10.0.0.1:6379\"]}}\nworkload: a\n"
	if e, err := Parse("experiment.yaml", []byte(valid), nil, false); err != nil || e.NeedsLab() || len(e.DataNodes()) != 0 {
		t.Errorf("valid file: lab %v, nodes %v, %v", e.NeedsLab(), e.DataNodes(), err)
	}
	servers := `servers: ["10.0.0.1:6379"]`
	for _, tt := range []struct{ old, text, want string }{
		{"workload: a", "workload: a\ntopology: azure8", "topology has no effect"},
		{"workload: a", "workload: a\nscale: 2", "scale has no effect"},
		{"workload: a", "workload: a\ndrift: {steps: [{at: 1s, scale: 2}]}", "drift has no effect"},
		{"workload: a", "workload: a\nparallel: 2", "would disturb each other"},
		{"workload: a", "workload: a\nevents: [{at: 1s, kill: n1}]", "n1"},
		{"workload: a", "workload: a\nevents: [{at: 1s, link_down: {ids: [a~b]}}]", "a~b"},
		{servers, "servers: [10.0.0.1]", `"10.0.0.1" is not HOST:PORT`},
		{servers, "servers: ['a:1', 'a:1']", "server a:1 is given twice"},
		{servers, "timeout: 1m", "give servers, or servers_from"},
		{servers, servers + ", down: stop", "down without up"},
		{servers, servers + ", servers_from: list", "servers_from"},
		{"redis,", "redis, options: {masters: 3},", "options"},
		{"redis,", "redis, count: 3,", "count"},
	} {
		_, err := Parse("experiment.yaml", []byte(strings.Replace(valid, tt.old, tt.text, 1)), nil, false)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.text, err, tt.want)
		}
	}
}
