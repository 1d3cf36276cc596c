package flavor

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// GovernedNode is a node whose CPU quota a Governor adjusts.
type GovernedNode interface {
	Name() string
	// LimitCPU sets the quota in cores.
	LimitCPU(cores float64) error
	// Used returns the CPU time used and the CPU time denied by the quota, since the target started.
	Used() (used, throttled time.Duration, err error)
}

// slot is the interval between changes of quotas.
const slot = 100 * time.Millisecond

// leastQuota is the quota in cores that keeps a machine with a credit debt alive.
const leastQuota = 0.01

// Governor makes machines obey their flavors: it counts what they use, takes credits and
// neighbours into account, and sets their quota for the next Slot.
type Governor struct {
	mu      sync.Mutex
	targets map[string]*governedTarget
}

type governedTarget struct {
	target  GovernedNode
	flavor  Flavor
	account *creditAccount // nil without credits
	steal   stealModel

	used, throttled time.Duration // at the last slot
	at              time.Time
	taken           float64       // share stolen in the current slot
	quota           float64       // cores
	stolen          time.Duration // total
}

// State is the state of a governed target.
type State struct {
	// Stolen is the total CPU time that neighbours took.
	Stolen time.Duration
	// Credits is the balance; negative if the flavor has no credits.
	Credits float64
}

// NewGovernor returns a governor without targets.
func NewGovernor() *Governor { return &Governor{targets: map[string]*governedTarget{}} }

// Add puts a target under the governor. The seed determines when neighbours run.
func (g *Governor) Add(m GovernedNode, f Flavor, seed uint64) {
	x := &governedTarget{target: m, flavor: f, steal: newStealModel(f.Steal, seed)}
	if f.Credits != nil {
		x.account = newCreditAccount(*f.Credits)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.targets[m.Name()] = x
}

// Run adjusts quotas until ctx ends. It returns the first error.
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

// step accounts for the last slot and sets the quota of the next slot.
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
		// Only CPU time that the target wanted counts as stolen: at most the throttled time.
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

// State returns the state of a target; ok is false for a target that is not governed.
func (g *Governor) State(name string) (State, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	x, ok := g.targets[name]
	if !ok {
		return State{}, false
	}
	s := State{Stolen: x.stolen, Credits: -1}
	if x.account != nil {
		s.Credits = x.account.balance()
	}
	return s, true
}
