package service

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/topology"
)

// places are three members and a client.
func places() []PlannedNode {
	var all []PlannedNode
	for i, name := range []string{"n1", "n2", "n3", "client"} {
		all = append(all, PlannedNode{Name: name, Addr: netip.AddrFrom4([4]byte{10, 77, 0, byte(i + 1)}), Member: name != "client"})
	}
	return all
}

func of(kind, members string, change ...func(*topology.Service)) topology.Service {
	s := topology.Service{Kind: kind, Name: "db", Members: members, Low: 30000, High: 30020, Balance: "random"}
	for _, c := range change {
		c(&s)
	}
	return s
}

func auto(s *topology.Service) { s.Auto = true }

func publish(host, container int) func(*topology.Service) {
	return func(s *topology.Service) { s.Publish = map[int]int{container: host} }
}

// reached has the addresses of a member's two ports, and of the shared service.
func reached(p Plan, node int) []string {
	m := p.Nodes[node].Member
	at := func(port int) string {
		if outside, ok := m.Ports[port]; ok {
			port = outside
		}
		return hostPort(m.Addr, port)
	}
	return []string{m.Listen.String(), at(6379), at(16379)}
}

func TestPlan(t *testing.T) {
	tests := []struct {
		name    string
		service topology.Service
		taken   map[string]int
		want    []string // addresses of n2
		contact []string
		remaps  bool
	}{
		{"none", topology.Service{}, nil, []string{"10.77.0.2", "10.77.0.2:6379", "10.77.0.2:16379"}, nil, false},
		{"static", of(topology.HostPort, topology.Own), nil, []string{"172.18.0.2", "10.77.0.2:6379", "10.77.0.2:16379"}, nil, false},
		{"published", of(topology.HostPort, topology.Own, publish(7000, 6379)), nil,
			[]string{"172.18.0.2", "10.77.0.2:7000", "10.77.0.2:16379"}, nil, true},
		{"auto", of(topology.HostPort, topology.Own, auto), map[string]int{"n2": 30000},
			[]string{"172.18.0.2", "10.77.0.2:30001", "10.77.0.2:30002"}, nil, true},
		{"auto on another node", of(topology.HostPort, topology.Own, auto), map[string]int{"n1": 30000},
			[]string{"172.18.0.2", "10.77.0.2:30000", "10.77.0.2:30001"}, nil, true},
		{"node-port", of(topology.NodePort, topology.Own), nil, []string{"10.112.0.2", "10.77.0.2:30004", "10.77.0.2:30005"}, nil, true},
		{"node-port, in use on the client's node", of(topology.NodePort, topology.Own), map[string]int{"client": 30001},
			[]string{"10.112.0.2", "10.77.0.2:30005", "10.77.0.2:30006"}, nil, true},
		{"node-port, shared", of(topology.NodePort, topology.Shared, publish(30010, 6379)), nil,
			[]string{"10.112.0.2", "10.112.0.2:6379", "10.112.0.2:16379"},
			[]string{"10.77.0.1:30010", "10.77.0.2:30010", "10.77.0.3:30010"}, false},
		{"service-ip", of(topology.ServiceIP, topology.Own), nil, []string{"10.112.0.2", "10.112.128.2:6379", "10.112.128.2:16379"}, nil, false},
		{"service-ip, shared", of(topology.ServiceIP, topology.Shared), nil, []string{"10.112.0.2", "10.112.0.2:6379", "10.112.0.2:16379"},
			[]string{"10.112.255.1:6379"}, false},
		{"central", of(topology.Central, topology.Own), nil, []string{"10.77.0.2", "10.77.0.1:30004", "10.77.0.1:30005"}, nil, true},
		{"central on the client's node", of(topology.Central, topology.Shared, func(s *topology.Service) { s.On = "client" }), nil,
			[]string{"10.77.0.2", "10.77.0.2:6379", "10.77.0.2:16379"}, []string{"10.77.0.4:30000"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := NewPlan(tt.service, places(), []int{6379, 16379}, func(node string, port int) bool { return tt.taken[node] == port })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, reached(p, 1)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.contact, p.ContactPoints(6379)); diff != "" {
				t.Errorf("contact:\n%s", diff)
			}
			if p.Remaps() != tt.remaps {
				t.Errorf("remaps %v", p.Remaps())
			}
			for i, n := range p.Nodes[:3] {
				if got := p.NodeOf(reached(p, i)[1]); got != n.Name {
					t.Errorf("got %q at %s, want %s", reached(p, i)[1], got, n.Name)
				}
			}
			if got := p.NodeOf("10.99.0.1:6379"); got != "" {
				t.Errorf("a foreign address was resolved to %s", got)
			}
		})
	}
}

// Conflicts are reported before anything starts.
func TestPortConflicts(t *testing.T) {
	noPorts := func(s *topology.Service) { s.Expose = []int{} }
	narrow := func(s *topology.Service) { s.High = 30003 }
	tests := []struct {
		name    string
		service topology.Service
		taken   map[string]int
		want    string
	}{
		{"published twice", of(topology.HostPort, topology.Own, publish(16379, 6379)), nil,
			"16379 is assigned to the containers' ports 6379 and 16379"},
		{"no port at all", of(topology.Central, topology.Own, noPorts), nil, "ports unknown"},
		{"no listener", of(topology.HostPort, topology.Own, publish(80, 8080)), nil, "no container listens on 8080"},
		{"static port in use", of(topology.HostPort, topology.Own), map[string]int{"n3": 6379}, "port 6379 of n3 is in use"},
		{"the range is too narrow", of(topology.NodePort, topology.Own, narrow), nil, "too few free ports"},
		{"the range is in use", of(topology.HostPort, topology.Own, auto, func(s *topology.Service) { s.High = 30001 }),
			map[string]int{"n2": 30001}, "too few free ports"},
		{"node-port taken", of(topology.NodePort, topology.Shared, publish(30010, 6379)), map[string]int{"client": 30010},
			"port 30010 of client"},
		{"the balancer's node has a member", of(topology.Central, topology.Shared, publish(6379, 6379)), nil, "port 6379 of n1"},
	}
	for _, tt := range tests {
		ports := []int{6379, 16379}
		if tt.service.Expose != nil {
			ports = nil
		}
		_, err := NewPlan(tt.service, places(), ports, func(node string, port int) bool { return tt.taken[node] == port })
		if !errors.Is(err, ErrPort) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestExposedPorts(t *testing.T) {
	p, err := NewPlan(of(topology.HostPort, topology.Own, func(s *topology.Service) { s.Expose = []int{80, 6379} }), places(), []int{6379},
		nil)
	if diff := cmp.Diff([]int{6379, 80}, p.Ports); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestAddressesOfManyNodes(t *testing.T) {
	seen := map[netip.Addr]bool{}
	var many []PlannedNode
	for range 1000 {
		many = append(many, PlannedNode{Name: "n", Member: true})
	}
	p, err := NewPlan(of(topology.ServiceIP, topology.Own), many, []int{1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range p.Nodes {
		for _, a := range []netip.Addr{n.Gateway, n.Member.Listen, n.Member.VIP} {
			if seen[a] || !overlayNet.Contains(a) || a == frontIP {
				t.Fatalf("%s is assigned twice or is not an address of the network", a)
			}
			seen[a] = true
		}
	}
	if _, err := NewPlan(of(topology.ServiceIP, topology.Own), make([]PlannedNode, maxNodes+1), nil, nil); !errors.Is(err, ErrTooMany) {
		t.Errorf("more nodes than addresses: %v", err)
	}
	if _, err := NewPlan(of(topology.Central, topology.Own, func(s *topology.Service) { s.On = "nobody" }), places(), []int{1},
		nil); !errors.Is(err, ErrBalancer) {
		t.Errorf("a balancer on an unknown node: %v", err)
	}
}

func TestNames(t *testing.T) {
	p, err := NewPlan(of(topology.ServiceIP, topology.Own), places(), []int{6379}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, a := range p.Names() {
		got[name] = a.String()
	}
	want := map[string]string{"db.skerry.internal": "10.112.255.1", "n1.db.skerry.internal": "10.112.128.1",
		"n2.db.skerry.internal": "10.112.128.2", "n3.db.skerry.internal": "10.112.128.3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDescribeAddresses(t *testing.T) {
	p, err := NewPlan(of(topology.NodePort, topology.Own), places()[2:], []int{80}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"10.77.0.3:30000 -> any member's 80", "10.77.0.3:30001 -> n3's 80"}
	if diff := cmp.Diff(want, p.DescribeAddresses()); diff != "" {
		t.Error(diff)
	}
}

// The shared service forwards to the healthy members, or to all if none is healthy.
func TestTargets(t *testing.T) {
	p, err := NewPlan(of(topology.NodePort, topology.Shared), places(), []int{6379}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		serving serving
		want    string
	}{
		{nil, "10.112.0.1 10.112.0.2 10.112.0.3"}, {serving{}, "10.112.0.1 10.112.0.2 10.112.0.3"},
		{serving{"n2": true}, "10.112.0.2"}, {serving{"n1": true, "n3": true}, "10.112.0.1 10.112.0.3"},
	} {
		var got []string
		for _, a := range p.nodeRules(p.Nodes[3], tt.serving).Forwards[0].Members {
			got = append(got, a.String())
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%v: %v, want %s", tt.serving, got, tt.want)
		}
	}
}

func TestHAProxyConfiguration(t *testing.T) {
	p, err := NewPlan(of(topology.Central, topology.Own, func(s *topology.Service) { s.Check = 1e9; s.Balance = roundRobin }), places()[:2],
		[]int{6379}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `defaults
  mode tcp
  timeout connect 5s
  timeout client 1h
  timeout server 1h

listen all-6379
  bind 10.77.0.1:30000
  balance roundrobin
  server n1 10.77.0.1:6379 check inter 1000 fall 1 rise 1
  server n2 10.77.0.2:6379 check inter 1000 fall 1 rise 1

listen n1-6379
  bind 10.77.0.1:30001
  server n1 10.77.0.1:6379

listen n2-6379
  bind 10.77.0.1:30002
  server n2 10.77.0.2:6379
`
	if diff := cmp.Diff(want, p.haproxyConfig()); diff != "" {
		t.Error(diff)
	}
}
