package topology

import (
	"errors"
	"fmt"
	"strings"

	"skerry/internal/base/unit"
	"skerry/internal/topology/flavor"
)

// FlavorSpec is a cloud machine type: a preset, explicit values, or a preset with overrides. Control groups enforce it.
// Limits that a machine cannot enforce are reported.
type FlavorSpec struct {
	// From is a preset: t2.small, m1.small, fhc, faults, services ...
	From string `yaml:"from" json:"from,omitempty" jsonschema:"example=t2.small,example=fhc"`
	// VCPUs is the quota in cores.
	VCPUs *float64 `yaml:"vcpus" json:"vcpus,omitempty" jsonschema:"minimum=0"`
	// Memory is the limit.
	Memory *unit.Bytes `yaml:"memory" json:"memory,omitempty"`
	// Disk limits the throughput of the disk.
	Disk *DiskSpec `yaml:"disk" json:"disk,omitempty"`
	// Credits make the processors burstable.
	Credits *CreditsSpec `yaml:"credits" json:"credits,omitempty"`
	// Steal is the mean share of CPU time taken by neighbours, at random times that the seed determines.
	Steal *unit.Fraction `yaml:"steal" json:"steal,omitempty"`
}

func (FlavorSpec) Shorthand() string { return "from" }

// DiskSpec limits the rate of a disk per second. Omitted keys mean no limit.
type DiskSpec struct {
	// Read is the maximum number of bytes read per second.
	Read *unit.Bytes `yaml:"read" json:"read,omitempty"`
	// Write is the maximum number of bytes written per second.
	Write *unit.Bytes `yaml:"write" json:"write,omitempty"`
	// ReadIOPS is the maximum number of reads per second; 0 is no limit.
	ReadIOPS int64 `yaml:"read_iops" json:"read_iops,omitempty" jsonschema:"minimum=0"`
	// WriteIOPS is the maximum number of writes per second; 0 is no limit.
	WriteIOPS int64 `yaml:"write_iops" json:"write_iops,omitempty" jsonschema:"minimum=0"`
}

// CreditsSpec models burstable processors. One credit is one processor at full speed for one minute.
type CreditsSpec struct {
	// EarnPerHour is the number of credits earned per hour. It gives the sustained baseline: 12 credits are 20 % of one
	// processor.
	EarnPerHour float64 `yaml:"earn_per_hour" json:"earn_per_hour" jsonschema:"required,exclusiveMinimum=0"`
	// Max is the maximum balance. Default: the credits earned in a day.
	Max *float64 `yaml:"max" json:"max,omitempty" jsonschema:"minimum=0"`
	// Launch is the balance when the workload starts. Default: 30 for each processor.
	Launch *float64 `yaml:"launch" json:"launch,omitempty" jsonschema:"minimum=0"`
}

// buildFlavor converts a spec into a flavor.
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
		return f, errors.New("credits and steal need a number of processors; give vcpus")
	}
	if f.Steal >= 1 {
		return f, errors.New("steal must be below 100%")
	}
	return f, nil
}

// setResources sets the flavor and the limits of a node: first those of the defaults, then its own. In each step
// explicit limits override those of the flavor.
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
			b.fail(path, fmt.Sprintf("node %q has a flavor with credits or steal, but no CPU limit", node.Name), "remove cpu: 0")
		}
	}
}
