// Package flavor is what a cloud sells as a machine: virtual processors, memory, a disk of so
// much throughput, processors that earn credits, and neighbours that steal. The models are
// pure; a Governor makes control groups obey them.
package flavor

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"skerry/internal/base/suggest"
)

// Flavor is one kind of machine. Zero values are no limit.
type Flavor struct {
	Name   string  `json:"name,omitempty"`
	VCPUs  float64 `json:"vcpus,omitempty"`
	Memory int64   `json:"memory,omitempty"` // bytes
	Disk   Disk    `json:"disk,omitzero"`
	// Credits make the processors burst; nil for those that run at full speed always.
	Credits *Credits `json:"credits,omitempty"`
	// Steal is the share of its processors' time that neighbours take on average.
	Steal float64 `json:"steal,omitempty"`
}

// Disk bounds a second of a machine's disk; 0 is no bound.
type Disk struct {
	ReadBytes  int64 `json:"read_bytes,omitempty"`
	WriteBytes int64 `json:"write_bytes,omitempty"`
	ReadOps    int64 `json:"read_ops,omitempty"`
	WriteOps   int64 `json:"write_ops,omitempty"`
}

// Governed tells whether the flavor's quota changes with time.
func (f Flavor) Governed() bool { return f.Credits != nil || f.Steal > 0 }

// ErrUnknown says that there is no flavor of a name.
var ErrUnknown = errors.New("no such flavor")

const (
	gib = 1 << 30
	mib = 1 << 20
)

// t2 are the credits of a burstable machine that earns so many an hour: as many are kept as
// it earns in a day, and 30 for each processor come with the launch.
func t2(earn, vcpus float64) *Credits {
	return &Credits{EarnPerHour: earn, Max: 24 * earn, Launch: 30 * vcpus}
}

// presets are the machines of the source documents, and the burstable family that one of them
// used (sizes and credits as its maker documents them).
func presets() []Flavor {
	return []Flavor{
		{Name: "t2.nano", VCPUs: 1, Memory: gib / 2, Credits: t2(3, 1)},
		{Name: "t2.micro", VCPUs: 1, Memory: gib, Credits: t2(6, 1)},
		{Name: "t2.small", VCPUs: 1, Memory: 2 * gib, Credits: t2(12, 1)}, // CLOUDS on AWS
		{Name: "t2.medium", VCPUs: 2, Memory: 4 * gib, Credits: t2(24, 2)},
		{Name: "m1.small", VCPUs: 1, Memory: 2 * gib},                 // CLOUDS on OpenStack
		{Name: "fhc", VCPUs: 2, Memory: 4 * gib},                      // FHC's private cloud
		{Name: "faults", VCPUs: 1, Memory: 4 * gib},                   // FAULTS' KVM machines
		{Name: "services", VCPUs: 2, Memory: 4 * gib},                 // SERVICES' OpenStack machines
		{Name: "hydra.gcp.balancer", VCPUs: 2, Memory: 7*gib + gib/2}, // HYDRA
		{Name: "hydra.gcp.raft", VCPUs: 1, Memory: 3 * gib},           //
		{Name: "hydra.gcp.sql", VCPUs: 1, Memory: 3*gib + 768*mib},    //
		{Name: "hydra.aws", VCPUs: 1, Memory: gib},                    // each machine there
	}
}

// Names lists the presets.
func Names() []string {
	var names []string
	for _, f := range presets() {
		names = append(names, f.Name)
	}
	return names
}

// Preset returns the flavor of a name. The error wraps ErrUnknown and has the nearest spelling.
func Preset(name string) (Flavor, error) {
	all := presets()
	if i := slices.IndexFunc(all, func(f Flavor) bool { return f.Name == name }); i >= 0 {
		return all[i], nil
	}
	if near := suggest.Nearest(name, Names()); near != "" {
		return Flavor{}, fmt.Errorf("%w %q: did you mean %q?", ErrUnknown, name, near)
	}
	return Flavor{}, fmt.Errorf("%w %q: there are %s", ErrUnknown, name, strings.Join(Names(), ", "))
}
