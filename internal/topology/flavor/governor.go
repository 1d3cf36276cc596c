package flavor

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Target is what a Governor makes obey.
type Target interface {
	Name() string
	// LimitCPU changes the quota, in cores.
	LimitCPU(cores float64) error
	// Used is the processor time that was used and that the quota held back, since the
	// machine came up.
	Used() (used, throttled time.Duration, err error)
}

// slot is how often quotas are set.
const slot = 100 * time.Millisecond

// leastQuota keeps a machine that owes credits alive, in cores.
const leastQuota = 0.01

// Governor makes machines obey their flavors: it counts what they use, takes credits and
// neighbours into account, and sets their quota for the next Slot.
type Governor struct {
	mu      sync.Mutex
	targets map[string]*governedTarget
}

type governedTarget struct {
	target  Target
	flavor  Flavor
	account *creditAccount // nil without credits
	steal   stealModel

	used, throttled time.Duration // at the last slot
	at              time.Time
	taken           float64 // share of the slot under way
	quota           float64
	stolen          time.Duration // so far
}

// State is what a governed machine is at.
type State struct {
	// Stolen is the processor time that neighbours kept from it so far.
	Stolen time.Duration
	// Credits is the balance; negative where the flavor has none.
	Credits float64
	Quota   float64 // cores
}

// NewGovernor begins with no machine.
func NewGovernor() *Governor { return &Governor{targets: map[string]*governedTarget{}} }

// Add puts a machine under the governor. The seed decides when neighbours run.
func (g *Governor) Add(m Target, f Flavor, seed uint64) {
	x := &governedTarget{target: m, flavor: f, steal: newStealModel(f.Steal, seed)}
	if f.Credits != nil {
		x.account = newCreditAccount(*f.Credits)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.targets[m.Name()] = x
}

// Run governs until ctx ends, and returns the first error.
func (g *Governor) Run(ctx context.Context) error {
	tick := time.NewTicker(slot)
	defer tick.Stop()
	for k := uint64(0); ; k++ {
		if err := g.step(k, time.Now()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (g *Governor) step(k uint64, now time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, x := range g.targets {
		if err := x.step(k, now); err != nil {
			return fmt.Errorf("governing %s: %w", name, err)
		}
	}
	return nil
}

// step takes the last slot into account and sets the quota of the next.
func (x *governedTarget) step(k uint64, now time.Time) error {
	used, throttled, err := x.target.Used()
	if err != nil {
		return err
	}
	if !x.at.IsZero() {
		took := now.Sub(x.at)
		if x.account != nil {
			x.account.spend(used-x.used, took)
		}
		// It was kept from nothing that it did not want.
		x.stolen += min(throttled-x.throttled, time.Duration(x.taken*x.quota/(1-min(x.taken, 0.99))*float64(took)))
	}
	x.used, x.throttled, x.at = used, throttled, now
	x.taken = x.steal.shareIn(k)
	quota := x.flavor.VCPUs
	if x.account != nil {
		quota = x.account.quota(quota, slot)
	}
	quota = max(leastQuota, quota*(1-x.taken))
	if quota == x.quota {
		return nil
	}
	x.quota = quota
	return x.target.LimitCPU(quota)
}

// State returns what a machine is at; not ok for one that is not governed.
func (g *Governor) State(name string) (State, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	x, ok := g.targets[name]
	if !ok {
		return State{}, false
	}
	s := State{Stolen: x.stolen, Credits: -1, Quota: x.quota}
	if x.account != nil {
		s.Credits = x.account.balance()
	}
	return s, true
}
