// Package flavor models cloud machine types: virtual processors, memory, disk throughput, CPU credits and CPU steal.
// The models are pure. A Governor applies them to control groups.
package flavor

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/suggest"
)

// Flavor is a machine type. Zero values are no limit.
type Flavor struct {
	Name   string  `json:"name,omitempty"`
	VCPUs  float64 `json:"vcpus,omitempty"`
	Memory int64   `json:"memory,omitempty"` // bytes
	Disk   Disk    `json:"disk,omitzero"`
	// Credits of burstable processors; nil for processors that always run at full speed.
	Credits *Credits `json:"credits,omitempty"`
	// Steal is the mean share of CPU time taken by neighbours.
	Steal float64 `json:"steal,omitempty"`
}

// Disk limits the rate of a disk per second; 0 is no limit.
type Disk struct {
	ReadBytes  int64 `json:"read_bytes,omitempty"`
	WriteBytes int64 `json:"write_bytes,omitempty"`
	ReadOps    int64 `json:"read_ops,omitempty"`
	WriteOps   int64 `json:"write_ops,omitempty"`
}

// Governed reports whether the CPU quota of the flavor changes over time.
func (f Flavor) Governed() bool { return f.Credits != nil || f.Steal > 0 }

// ErrUnknown is returned for an unknown flavor.
var ErrUnknown = errors.New("no such flavor")

const (
	gib = 1 << 30
	mib = 1 << 20
)

// t2Credits returns the credits of a t2 machine: the maximum is a day's earnings, and the launch credits are 30 for
// each processor.
func t2Credits(earn, vcpus float64) *Credits {
	return &Credits{EarnPerHour: earn, Max: 24 * earn, Launch: 30 * vcpus}
}

// presets returns the machines of the source documents, and AWS's burstable family t2, which one of them used. Sizes
// and credits are those of the vendor's documentation.
func presets() []Flavor {
	return []Flavor{
		{Name: "t2.nano", VCPUs: 1, Memory: gib / 2, Credits: t2Credits(3, 1)},
		{Name: "t2.micro", VCPUs: 1, Memory: gib, Credits: t2Credits(6, 1)},
		{Name: "t2.small", VCPUs: 1, Memory: 2 * gib, Credits: t2Credits(12, 1)}, // CLOUDS on AWS
		{Name: "t2.medium", VCPUs: 2, Memory: 4 * gib, Credits: t2Credits(24, 2)},
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

func presetNames() []string {
	var names []string
	for _, f := range presets() {
		names = append(names, f.Name)
	}
	return names
}

// Preset returns a flavor by name. The error wraps ErrUnknown and suggests the nearest spelling.
func Preset(name string) (Flavor, error) {
	all := presets()
	if i := slices.IndexFunc(all, func(f Flavor) bool { return f.Name == name }); i >= 0 {
		return all[i], nil
	}
	if near := suggest.Nearest(name, presetNames()); near != "" {
		return Flavor{}, fmt.Errorf("%w %q: did you mean %q?", ErrUnknown, name, near)
	}
	return Flavor{}, fmt.Errorf("%w %q: presets are %s", ErrUnknown, name, strings.Join(presetNames(), ", "))
}

// Credits of burstable processors. One credit is one virtual processor at full speed for one minute. The earnings
// determine the sustained baseline.
type Credits struct {
	EarnPerHour float64 `json:"earn_per_hour"`
	// Max is the maximum balance of earned credits. Further earnings are lost.
	Max float64 `json:"max"`
	// Launch credits exist at launch. They are spent first and do not count towards Max.
	Launch float64 `json:"launch"`
}

// Baseline returns the cores that the earnings sustain: 0.2 for 12 credits per hour.
func (c Credits) Baseline() float64 { return c.EarnPerHour / 60 }

// creditAccount tracks the credits of a machine.
type creditAccount struct {
	credits Credits
	launch  float64
	earned  float64
}

// newCreditAccount returns the account of a machine that was just launched.
func newCreditAccount(c Credits) *creditAccount { return &creditAccount{credits: c, launch: c.Launch} }

// balance returns the credits, at least 0.
func (a *creditAccount) balance() float64 { return max(0, a.launch+a.earned) }

// spend charges the CPU time used in a period and adds the credits earned in it. Use beyond the balance becomes debt.
func (a *creditAccount) spend(used, in time.Duration) {
	spent := used.Minutes()
	first := min(a.launch, spent)
	a.launch -= first
	a.earned = min(a.credits.Max, a.earned+a.credits.EarnPerHour*in.Hours()-(spent-first))
}

// quota returns the cores for the next period: the baseline plus the cores that the balance pays for, at most vcpus.
// AWS lowers the speed to the baseline over 15 minutes; this model lowers it when the balance is spent.
func (a *creditAccount) quota(vcpus float64, next time.Duration) float64 {
	pays := a.balance() / next.Minutes()
	if a.launch+a.earned < 0 { // debt is repaid from the baseline
		pays = max(-a.credits.Baseline()/2, (a.launch+a.earned)/next.Minutes())
	}
	return min(vcpus, a.credits.Baseline()+pays)
}

// stealModel is a seeded neighbour on the same processors. In each time slot it uses half of the processors or none.
// A share of at least one half is taken in every slot.
type stealModel struct {
	share float64
	seed  uint64
}

// newStealModel returns a neighbour with a mean share of the CPU time.
func newStealModel(share float64, seed uint64) stealModel { return stealModel{share, seed} }

// shareIn returns the share of the processors that the neighbour takes in the k-th slot.
func (t stealModel) shareIn(k uint64) float64 {
	const half = 0.5
	switch {
	case t.share <= 0:
		return 0
	case t.share >= half:
		return t.share
	case rand.New(rand.NewPCG(t.seed, k)).Float64() < t.share/half:
		return half
	}
	return 0
}
