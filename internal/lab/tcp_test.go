package lab

import (
	"errors"
	"strings"
	"testing"

	"skerry/internal/machine"
	"skerry/internal/machine/local"
)

const tcpSettings = "cd /proc/sys/net/ipv4; cat tcp_congestion_control tcp_rmem tcp_slow_start_after_idle | tr '\\t' ' '"

// Nodes have the TCP settings of a server, or of the topology, and not those of this machine.
func TestNodesHaveServerTCPSettings(t *testing.T) {
	for name, tt := range map[string]struct {
		given map[string]string
		want  string
	}{
		"tcp-server": {nil, "cubic\n4096 131072 67108864\n1"},
		"tcp-given": {map[string]string{"congestion_control": "reno", "rmem": "4096 87380 6291456", "slow_start_after_idle": "0"},
			"reno\n4096 87380 6291456\n0"},
	} {
		c := config(t, name)
		c.Topology.TCP = tt.given
		l := mustUp(t, c)
		for _, n := range c.Topology.Nodes {
			if got, err := shell(t, l, n.Name, tcpSettings); err != nil || strings.TrimSpace(got) != tt.want {
				t.Errorf("%s: %q, %v; want %q", n.Name, got, err, tt.want)
			}
		}
		control, _, _ := strings.Cut(tt.want, "\n")
		if got := l.Settings()["net.ipv4.tcp_congestion_control"]; got != control {
			t.Errorf("the lab reports %q, want %q", got, control)
		}
	}
}

// A lab does not come up if its nodes cannot have the topology's congestion control.
func TestUnavailableTCPSettingIsRejected(t *testing.T) {
	c := config(t, "tcp")
	c.Topology.TCP = map[string]string{"congestion_control": "none_such"}
	l, err := Up(t.Context(), c)
	if err == nil {
		t.Cleanup(func() { _ = l.Down(t.Context()) })
	}
	if err == nil || !strings.Contains(err.Error(), `set net.ipv4.tcp_congestion_control to "none_such"`) {
		t.Fatal(err)
	}
	m, err := local.New(local.Config{State: c.StateDir, Data: c.DataDir, Exe: c.Exe})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Open(t.Context(), c.Name); !errors.Is(err, machine.ErrNotFound) {
		t.Errorf("the lab still exists: %v", err)
	}
}
