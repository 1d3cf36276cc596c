package topology

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestService(t *testing.T) {
	with := func(change func(*Service)) Service {
		s := Service{Name: "db", Members: Own, Low: 30000, High: 32767, Balance: "random", Check: time.Second}
		change(&s)
		return s
	}
	tests := []struct {
		text string
		want Service
	}{
		{"from: azure8", Service{}},
		{"from: azure8\nservice: none", Service{}},
		{"from: azure8\nservice: service-ip", with(func(s *Service) { s.Kind = ServiceIP })},
		{"from: azure8\nservice: {kind: host-port, ports: auto, range: 7000-7100}", with(func(s *Service) { s.Kind, s.Auto, s.Low, s.High = HostPort, true, 7000, 7100 })},
		{"from: azure8\nservice: {kind: host-port, publish: [\"7000:6379\", \"7001:16379\"]}", with(func(s *Service) { s.Kind, s.Publish = HostPort, map[int]int{6379: 7000, 16379: 7001} })},
		{"from: azure8\nservice: {kind: node-port, members: shared, check: 0s, name: pay, expose: [80]}", with(func(s *Service) {
			s.Kind, s.Members, s.Check, s.Name, s.Expose = NodePort, Shared, 0, "pay", []int{80}
		})},
		{"from: azure8\nservice: {kind: central, on: Seoul, balance: round-robin}", with(func(s *Service) { s.Kind, s.On, s.Balance = Central, "Seoul", "round-robin" })},
		{"from: azure8\nservice: {kind: central, on: client}", with(func(s *Service) { s.Kind, s.On = Central, "client" })},
	}
	for _, tt := range tests {
		got, err := build(t, tt.text, nil)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
		}
		if diff := cmp.Diff(tt.want, got.Service); diff != "" {
			t.Errorf("%s:\n%s", tt.text, diff)
		}
	}
}

func TestServiceMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"service: ingress":                                                     "not one of none, host-port, node-port, service-ip, central",
		"service: {name: pay}":                                                 "without a service kind",
		"service: {kind: service-ip, name: a.b}":                               "invalid host name",
		"service: {kind: host-port, members: shared}":                          "publishes each member separately",
		"service: {kind: node-port, ports: auto}":                              "only host-port",
		"service: {kind: service-ip, publish: [\"1:2\"]}":                      "port numbers of the containers",
		"service: {kind: node-port, on: Seoul}":                                "only central",
		"service: {kind: central, on: Soul}":                                   `unknown node "Soul"`,
		"service: {kind: node-port, range: 9-3}":                               "invalid port range",
		"service: {kind: host-port, publish: [\"7000:6379\", \"7000:16379\"]}": "7000 is already published for 6379",
		"service: {kind: host-port, publish: [\"7000:6379\", \"7001:6379\"]}":  "6379 is already published as 7000",
		"service: {kind: host-port, publish: [\"70000:6379\"]}":                "invalid port mapping",
		"service: {kind: node-port, expose: [80, 80]}":                         "listed twice",
		"volumes: nfs":                      "not one of none, bind, overlay, loop",
		"volumes: {kind: bind, size: 1GiB}": "only loop volumes",
		"volumes: {kind: loop, size: 1MiB}": "too small",
	} {
		if _, err := build(t, "from: azure8\n"+text, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v does not say %q", text, err, want)
		}
	}
}

func TestVolumes(t *testing.T) {
	for text, want := range map[string]Volume{
		"volumes: none":                      {},
		"volumes: bind":                      {Kind: BindVolume},
		"volumes: overlay":                   {Kind: OverlayVolume},
		"volumes: loop":                      {Kind: LoopVolume, Size: 2 << 30},
		"volumes: {kind: loop, size: 64MiB}": {Kind: LoopVolume, Size: 64 << 20},
	} {
		got, err := build(t, "from: azure8\n"+text, nil)
		if err != nil || got.Volume != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got.Volume, err, want)
		}
	}
}

// The service settings of a file override those of its base.
func TestServiceOverridesBase(t *testing.T) {
	over := Spec{Service: ServiceSpec{Kind: NodePort}}
	base := Spec{Service: ServiceSpec{Kind: HostPort, Ports: "auto"}, Volumes: VolumeSpec{Kind: LoopVolume}}
	got := base.merge(over)
	if diff := cmp.Diff(over.Service, got.Service); diff != "" {
		t.Error(diff)
	}
	if got.Volumes.Kind != LoopVolume {
		t.Errorf("volumes: %v", got.Volumes)
	}
}
