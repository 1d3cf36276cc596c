// Package flavor is what a cloud sells as a machine: virtual processors, memory, a disk of so
// much throughput, processors that earn credits, and neighbours that steal. The models are
// pure; a Governor makes control groups obey them.
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

// t2Credits are the credits of a burstable machine that earns so many an hour: as many are kept as
// it earns in a day, and 30 for each processor come with the launch.
func t2Credits(earn, vcpus float64) *Credits {
	return &Credits{EarnPerHour: earn, Max: 24 * earn, Launch: 30 * vcpus}
}

// presets are the machines of the source documents, and the burstable family that one of them
// used (sizes and credits as its maker documents them).
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

// presetNames lists the presets.
func presetNames() []string {
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
	if near := suggest.Nearest(name, presetNames()); near != "" {
		return Flavor{}, fmt.Errorf("%w %q: did you mean %q?", ErrUnknown, name, near)
	}
	return Flavor{}, fmt.Errorf("%w %q: there are %s", ErrUnknown, name, strings.Join(presetNames(), ", "))
}

// Credits are those of burstable processors: one is one virtual processor at full speed for
// one minute. What a machine earns is what it may use for ever: its baseline.
type Credits struct {
	EarnPerHour float64 `json:"earn_per_hour"`
	// Max is how many are kept; what is earned beyond is lost.
	Max float64 `json:"max"`
	// Launch is how many a machine begins with. They are spent first, and do not count
	// towards Max.
	Launch float64 `json:"launch"`
}

// Baseline is the cores that what is earned pays for: 0.2 for 12 credits an hour.
func (c Credits) Baseline() float64 { return c.EarnPerHour / 60 }

// creditAccount is a machine's credits as time goes on.
type creditAccount struct {
	credits Credits
	launch  float64
	earned  float64
}

// newCreditAccount is that of a machine just launched.
func newCreditAccount(c Credits) *creditAccount { return &creditAccount{credits: c, launch: c.Launch} }

// balance is how many credits there are, never below 0.
func (a *creditAccount) balance() float64 { return max(0, a.launch+a.earned) }

// spend takes down that so much processor time was used in a length of time, in which credits
// were earned too. What was used beyond the balance is owed.
func (a *creditAccount) spend(used, in time.Duration) {
	spent := used.Minutes()
	first := min(a.launch, spent)
	a.launch -= first
	a.earned = min(a.credits.Max, a.earned+a.credits.EarnPerHour*in.Hours()-(spent-first))
}

// quota is the cores that may be used in the next length of time: the baseline and whatever
// the balance pays for, at most all of them. (The maker lowers speed to the baseline within
// 15 minutes; here it is lowered when the balance is spent.)
func (a *creditAccount) quota(vcpus float64, next time.Duration) float64 {
	pays := a.balance() / next.Minutes()
	if a.launch+a.earned < 0 { // what is owed is paid back from the baseline
		pays = max(-a.credits.Baseline()/2, (a.launch+a.earned)/next.Minutes())
	}
	return min(vcpus, a.credits.Baseline()+pays)
}

// stealModel is a neighbour on the same processors, seeded: in each slot of time it either wants to
// run, and gets its half of them, or it does not.
type stealModel struct {
	share float64
	seed  uint64
}

// newStealModel takes a share of the time on average.
func newStealModel(share float64, seed uint64) stealModel { return stealModel{share, seed} }

// shareIn is the share that it takes in the k-th slot.
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
