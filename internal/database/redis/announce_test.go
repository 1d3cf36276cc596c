package redis

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/database"
	"skerry/internal/machine/host"
)

// published is a host whose ports differ from outside.
type published struct {
	host.Host
	ports map[int]int
}

func (published) Addr() string   { return "10.77.0.1" }
func (published) Listen() string { return "172.18.0.2" }
func (p published) Port(port int) int {
	if outside, ok := p.ports[port]; ok {
		return outside
	}
	return port
}

// A server binds within its container and announces its address from outside.
func TestAnnouncedAddress(t *testing.T) {
	o, err := parseOptions(3, nil)
	if err != nil {
		t.Fatal(err)
	}
	value := func(args []string, name string) string {
		if i := slices.Index(args, "--"+name); i >= 0 {
			return args[i+1]
		}
		return ""
	}
	for _, tt := range []struct {
		ports     map[int]int
		port, bus string // announced
	}{{nil, "", ""}, {map[int]int{6379: 7000, 16379: 30001}, "7000", "30001"}, {map[int]int{16379: 9}, "", "9"}} {
		args := o.arguments(published{ports: tt.ports}, "/data")
		got := []string{value(args, "bind"), value(args, "port"), value(args, "cluster-announce-ip"), value(args, "cluster-announce-port"), value(args, "cluster-announce-bus-port")}
		if diff := cmp.Diff([]string{"172.18.0.2", "6379", "10.77.0.1", tt.port, tt.bus}, got); diff != "" {
			t.Errorf("%v:\n%s", tt.ports, diff)
		}
	}
	c := &cluster{options: o}
	h := published{ports: map[int]int{6379: 7000}}
	if m := c.newMember(&withDir{h}); m.addr != "10.77.0.1:7000" || m.local != "172.18.0.2:6379" {
		t.Errorf("announced as %s, listens at %s", m.addr, m.local)
	}
}

type withDir struct{ published }

func (*withDir) Dir() string { return "/data" }

func TestPorts(t *testing.T) {
	got, err := New().Ports(3, database.Options{"port": 7000})
	if diff := cmp.Diff(database.Ports{All: []int{7000, 17000}}, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if _, err := New().Ports(3, database.Options{"port": "x"}); err == nil {
		t.Error("an invalid port was accepted")
	}
}
