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
		{"workload: a", "workload: a\nevents: [{at: 1s, join: spare}]", "cannot be chosen by name"},
		{"workload: a", "workload: a\nevents: [{at: 1s, leave: {count: 1}}]", "the cluster has no command leave"},
		{"workload: a", "workload: a\nevents: [{at: 1s, leave: {count: 1, manner: abrupt}}]", "decides how servers leave"},
		{"workload: a", "workload: a\nevents: [{at: 1s, join: {count: 1, choose: random}}]", "choose the servers"},
		{"workload: a", "workload: a\nevents: [{at: 1s, command: 'x {{(index .Nodes 1).Addr}}'}]", "index out of range"},
		{servers, servers + ", join: grow, leave: shrink", "join needs servers_from"},
		{servers, "servers_from: list, join: grow", "join needs its opposite"},
		{servers, "servers_from: list, up: start, join: 'grow {{.Cont}}'", "may contain {{.Count}} only"},
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
