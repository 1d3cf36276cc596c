package topology

import (
	"strings"
	"testing"

	"skerry/internal/base/strict"
)

// flavored builds the topology of a text.
func flavored(t *testing.T, text string) (Topology, error) {
	t.Helper()
	root, err := strict.Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var s Spec
	if ps := strict.Decode(root, &s, ""); len(ps) > 0 {
		return Topology{}, ps
	}
	return s.Build(".", nil)
}

func TestFlavorsSizeNodes(t *testing.T) {
	top, err := flavored(t, `
nodes:
  - {name: plain}
  - {name: other, flavor: fhc}
  - {name: less, cpu: 0.5}
  - {name: own, flavor: {vcpus: 2, disk: {write: 50MB, read_iops: 300}, credits: {earn_per_hour: 24, launch: 5}, steal: 10%}}
defaults: {flavor: t2.small, rtt: 1ms}
`)
	if err != nil {
		t.Fatal(err)
	}
	plain, other, less, own := top.Nodes[0], top.Nodes[1], top.Nodes[2], top.Nodes[3]
	if plain.CPU != 1 || plain.Memory != 2<<30 || plain.Flavor.Credits.EarnPerHour != 12 {
		t.Errorf("%+v", plain)
	}
	if other.CPU != 2 || other.Memory != 4<<30 || other.Flavor.Governed() {
		t.Errorf("%+v", other)
	}
	if less.CPU != 0.5 || less.Flavor.VCPUs != 0.5 || less.Memory != 2<<30 {
		t.Errorf("%+v", less)
	}
	f := own.Flavor
	if own.Memory != 0 || f.Disk.WriteBytes != 50_000_000 || f.Disk.ReadOps != 300 || f.Credits.Launch != 5 || f.Credits.Max != 576 || f.Steal != 0.1 {
		t.Errorf("%+v", f)
	}
	top.Nodes[0].Flavor.VCPUs = 9
	if top.Nodes[2].Flavor.VCPUs == 9 {
		t.Error("nodes share a flavor")
	}
}

func TestInvalidFlavors(t *testing.T) {
	for flavor, word := range map[string]string{
		"t2.smal":                          `"t2.small"`,
		"{steal: 10%}":                     "give vcpus",
		"{vcpus: 1, steal: 100%}":          "steal must be below 100%",
		"{vcpus: 1, credits: {launch: 3}}": "earn_per_hour is missing",
		"{vcpu: 1}":                        `"vcpus"`,
	} {
		_, err := flavored(t, "nodes: [{name: a, flavor: "+flavor+"}, b]\ndefaults: {rtt: 1ms}\n")
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", flavor, err)
		}
	}
}
