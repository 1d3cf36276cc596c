package topology

import (
	"errors"
	"fmt"
	"strings"

	"skerry/internal/base/unit"
	"skerry/internal/topology/flavor"
)

// FlavorSpec is what a node is as clouds sell machines: one of the presets, or values of one's
// own, or a preset with other values. Control groups enforce it; what a machine cannot
// enforce is told.
type FlavorSpec struct {
	// From is a preset: t2.small, m1.small, fhc, faults, services ...
	From string `yaml:"from" json:"from,omitempty" jsonschema:"example=t2.small,example=fhc"`
	// VCPUs is the quota in cores.
	VCPUs *float64 `yaml:"vcpus" json:"vcpus,omitempty" jsonschema:"minimum=0"`
	// Memory is the limit.
	Memory *unit.Bytes `yaml:"memory" json:"memory,omitempty"`
	// Disk bounds the throughput of the disk.
	Disk *DiskSpec `yaml:"disk" json:"disk,omitempty"`
	// Credits make the processors burst.
	Credits *CreditsSpec `yaml:"credits" json:"credits,omitempty"`
	// Steal is the share of the processors' time that neighbours take on average, at
	// random times that the seed decides.
	Steal *unit.Fraction `yaml:"steal" json:"steal,omitempty"`
}

// Shorthand: "flavor: t2.small" is "flavor: {from: t2.small}".
func (FlavorSpec) Shorthand() string { return "from" }

// DiskSpec bounds a second of a disk; what is left out is not bounded.
type DiskSpec struct {
	// Read is how much may be read in a second.
	Read *unit.Bytes `yaml:"read" json:"read,omitempty"`
	// Write is how much may be written in a second.
	Write *unit.Bytes `yaml:"write" json:"write,omitempty"`
	// ReadIOPS is how many reads there may be in a second.
	ReadIOPS int64 `yaml:"read_iops" json:"read_iops,omitempty" jsonschema:"minimum=0"`
	// WriteIOPS is how many writes there may be in a second.
	WriteIOPS int64 `yaml:"write_iops" json:"write_iops,omitempty" jsonschema:"minimum=0"`
}

// CreditsSpec is how processors burst: a credit is one processor at full speed for a minute.
type CreditsSpec struct {
	// EarnPerHour is how many credits are earned in an hour, which is what the machine may
	// use for ever: 12 are a baseline of 20 % of one processor.
	EarnPerHour float64 `yaml:"earn_per_hour" json:"earn_per_hour" jsonschema:"required,exclusiveMinimum=0"`
	// Max is how many are kept; left out, what a day earns.
	Max *float64 `yaml:"max" json:"max,omitempty" jsonschema:"minimum=0"`
	// Launch is how many a machine has when the workload begins; left out, 30 for each processor.
	Launch *float64 `yaml:"launch" json:"launch,omitempty" jsonschema:"minimum=0"`
}

// buildFlavor makes a flavor of its description.
func buildFlavor(s FlavorSpec) (flavor.Flavor, error) {
	var f flavor.Flavor
	if s.From != "" {
		var err error
		if f, err = flavor.Preset(s.From); err != nil {
			return f, err
		}
	}
	if s.VCPUs != nil {
		f.VCPUs = *s.VCPUs
	}
	if s.Memory != nil {
		f.Memory = int64(*s.Memory)
	}
	if d := s.Disk; d != nil {
		f.Disk.ReadOps, f.Disk.WriteOps = d.ReadIOPS, d.WriteIOPS
		if d.Read != nil {
			f.Disk.ReadBytes = int64(*d.Read)
		}
		if d.Write != nil {
			f.Disk.WriteBytes = int64(*d.Write)
		}
	}
	if c := s.Credits; c != nil {
		f.Credits = &flavor.Credits{EarnPerHour: c.EarnPerHour, Max: 24 * c.EarnPerHour, Launch: 30 * f.VCPUs}
		if c.Max != nil {
			f.Credits.Max = *c.Max
		}
		if c.Launch != nil {
			f.Credits.Launch = *c.Launch
		}
	}
	if s.Steal != nil {
		f.Steal = float64(*s.Steal)
	}
	if f.Governed() && f.VCPUs == 0 {
		return f, errors.New("credits and steal are of a number of processors; give vcpus")
	}
	if f.Steal >= 1 {
		return f, errors.New("neighbours that take all of the processors leave a machine that never runs")
	}
	return f, nil
}

// setResources gives a node its flavor and its limits: those of the defaults, then its own; in each a
// limit that is given itself wins over the flavor's.
func (b *builder) setResources(node *Node, path string, n NodeSpec) {
	d := b.spec.Defaults
	for _, x := range []struct {
		path   string
		flavor *FlavorSpec
		cpu    *float64
		memory *unit.Bytes
	}{{"defaults", d.Flavor, d.CPU, d.Memory}, {path, n.Flavor, n.CPU, n.Memory}} {
		if x.flavor != nil {
			f, err := buildFlavor(*x.flavor)
			if err != nil {
				message, hint, _ := strings.Cut(err.Error(), ": ")
				if !errors.Is(err, flavor.ErrUnknown) {
					message, hint = err.Error(), ""
				}
				b.fail(x.path+".flavor", fmt.Sprintf("the flavor of %s: %s", node.Name, message), hint)
				continue
			}
			node.Flavor, node.CPU, node.Memory = &f, f.VCPUs, f.Memory
		}
		if x.cpu != nil {
			node.CPU = *x.cpu
		}
		if x.memory != nil {
			node.Memory = int64(*x.memory)
		}
	}
	if node.Flavor != nil {
		node.Flavor.VCPUs, node.Flavor.Memory = node.CPU, node.Memory
		if node.Flavor.Governed() && node.CPU == 0 {
			b.fail(path, fmt.Sprintf("%s has a flavor with credits or steal and no limit of cores", node.Name), "leave cpu: 0 out")
		}
	}
}
