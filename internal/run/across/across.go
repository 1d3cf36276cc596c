// Package across is labs over several machines: it reaches those of a machines file, places the
// nodes of each lab on them, and gives them the programs that they need.
package across

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"golang.org/x/sync/errgroup"

	"skerry/internal/base/advice"
	"skerry/internal/experiment"
	"skerry/internal/lab"
	"skerry/internal/lab/place"
	"skerry/internal/machine/carrier"
	"skerry/internal/machine/fleet"
	"skerry/internal/machine/inventory"
	"skerry/internal/machine/remote"
	"skerry/internal/topology"
)

// Machines are those of a machines file, reached when they are needed.
type Machines struct {
	list    []inventory.Machine
	options carrier.Options
	rules   map[string]string

	mu    sync.Mutex
	open  map[string]*reached
	given map[string]bool // what Furnish has found or brought, by machine and folder
}

// reached is a machine with an agent.
type reached struct {
	*carrier.Connection
	clock remote.Clock
}

// clockProbes is how often a machine is asked for its time.
const clockProbes = 20

// New returns the machines of a file, that rules of package place are about.
func New(list []inventory.Machine, o carrier.Options, rules map[string]string) *Machines {
	return &Machines{list: list, options: o, rules: rules, open: map[string]*reached{}, given: map[string]bool{}}
}

// Known is what a machines file says of what its machines have.
func Known(list []inventory.Machine) []place.Machine {
	machines := make([]place.Machine, len(list))
	for i, m := range list {
		machines[i] = place.Machine{Name: m.Name, Site: m.Site, Cores: m.Cores, Memory: int64(m.Memory)}
	}
	return machines
}

// Fleet reaches the machines and places a topology's nodes on them.
func (m *Machines) Fleet(ctx context.Context, t topology.Topology) (*fleet.Fleet, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.reach(ctx); err != nil {
		return nil, err
	}
	known := Known(m.list)
	for i, x := range known {
		hello := m.open[x.Name].Hello
		known[i].Cores, known[i].Memory = cmp.Or(x.Cores, float64(hello.Cores)), cmp.Or(x.Memory, hello.Memory)
	}
	plan, err := place.New(t, known, m.rules)
	if err != nil {
		return nil, err
	}
	members := make([]fleet.Member, len(m.list))
	for i, x := range m.list {
		c := m.open[x.Name]
		members[i] = fleet.Member{Machine: c, Name: x.Name}
		// One that is not known is missed where nodes are on several machines.
		members[i].Addr, _ = netip.ParseAddr(cmp.Or(x.Address(), c.Hello.Addr))
	}
	return fleet.New(members, plan.At)
}

// Fits says, before anything is started, which of an experiment's labs cannot stand on the machines,
// as far as the machines file tells; nil where all can.
func (m *Machines) Fits(e experiment.Experiment) error {
	for _, cell := range e.Plan() {
		t, err := cell.Experiment.Cloud()
		if err != nil {
			return err
		}
		if err := lab.Apart(t, cell.Experiment.Engine); err != nil {
			return err
		}
		if _, err := place.New(t, Known(m.list), m.rules); err != nil {
			return err
		}
	}
	return nil
}

// reach reaches all machines that are not, or are no more. The caller holds mu.
func (m *Machines) reach(ctx context.Context) error {
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	for _, x := range m.list {
		if c := m.open[x.Name]; c != nil {
			select {
			case <-c.Gone():
				_ = c.Close() // what was lost was told when it was
				delete(m.open, x.Name)
				m.given = map[string]bool{}
			default:
				continue
			}
		}
		g.Go(func() error {
			c, err := carrier.Open(ctx, x, m.options)
			if err != nil {
				return err
			}
			clock, err := c.Clock(ctx, clockProbes)
			if err != nil {
				return errors.Join(err, c.Close())
			}
			mu.Lock()
			defer mu.Unlock()
			m.open[x.Name] = &reached{c, clock}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		err = fmt.Errorf("reaching the machines: %w", err)
		return advice.With(err, "%s", cmp.Or(advice.Of(err), "look at them with: skerry machines check FILE"))
	}
	return nil
}

// Clock is how far a machine's clock was ahead of this one's when it was reached.
func (m *Machines) Clock(machine string) (remote.Clock, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.open[machine]; c != nil {
		return c.clock, true
	}
	return remote.Clock{}, false
}

// Hello is what a machine's agent said of itself.
func (m *Machines) Hello(machine string) (kernel string, cores int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.open[machine]; c != nil {
		return c.Hello.Kernel, c.Hello.Cores
	}
	return "", 0
}

// Close lets go of all machines, which then end what is owned there.
func (m *Machines) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for name, c := range m.open {
		all.Go(func() {
			if err := c.Close(); err != nil {
				mu.Lock()
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
				mu.Unlock()
			}
		})
	}
	all.Wait()
	m.open = map[string]*reached{}
	return errors.Join(errs...)
}
