// Package multihost is labs over several machines: it reaches those of a machines file, places the
// nodes of each lab on them, and gives them the programs that they need.
package multihost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"golang.org/x/sync/errgroup"

	"skerry/internal/base/advice"
	"skerry/internal/base/unit"
	"skerry/internal/lab"
	"skerry/internal/lab/placement"
	"skerry/internal/machine/fleet"
	"skerry/internal/machine/inventory"
	"skerry/internal/machine/transport"
	"skerry/internal/topology"
)

// Machines are those of a machines file, reached when they are needed.
type Machines struct {
	list    []inventory.Machine
	options transport.Options

	mu        sync.Mutex
	open      map[string]*transport.Connection
	seen      map[string]bool // machines that have been reached once
	installed map[string]bool // what Furnish has found or brought, by machine and folder
}

// LabOptions are how a lab stands on machines.
type LabOptions struct {
	// Place says which nodes are on which machine, as rules of package place.
	Place map[string]string
	// Between is how packets cross between machines: Encrypted, also "", or Plain.
	Between string
	// Links are what links between machines are: Emulated, also "", or Real.
	Links string
}

// The ways in which packets cross between machines.
const (
	Encrypted = "encrypted"
	Plain     = "plain"
)

// What links between machines are: what the topology says, or as they are.
const (
	Emulated = "emulated"
	Real     = "real"
)

// clockProbes is how often a machine is asked for its time.
const clockProbes = 20

// New returns the machines of a file.
func New(list []inventory.Machine, o transport.Options) *Machines {
	return &Machines{list: list, options: o, open: map[string]*transport.Connection{}, seen: map[string]bool{}, installed: map[string]bool{}}
}

// Open are the machines that are listed, or those of the clusters that are.
func Open(ctx context.Context, f inventory.File, o transport.Options) (*Machines, error) {
	list, err := f.Expand(ctx)
	if err != nil {
		return nil, err
	}
	return New(list, o), nil
}

// PlaceNodes reaches the machines and places a topology's nodes on them, as rules of package place say. A
// machine that was reached before and is lost now is left out, unless rules are about it or it stands
// for a site; lost tells why.
func (m *Machines) PlaceNodes(ctx context.Context, t topology.Topology, rules map[string]string) (f *fleet.Fleet, lost, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if lost, err = m.connectAll(ctx, rules); err != nil {
		return nil, nil, err
	}
	var there []inventory.Machine
	for _, x := range m.list {
		if c := m.open[x.Name]; c != nil {
			x.Cores, x.Memory = cmp.Or(x.Cores, float64(c.Hello.Cores)), cmp.Or(x.Memory, unit.Bytes(c.Hello.Memory))
			there = append(there, x)
		}
	}
	plan, err := placement.New(t, placement.Known(there), rules)
	if err != nil {
		return nil, nil, errors.Join(err, lost)
	}
	if err := lab.Wholly(t, plan.Whole()); err != nil {
		return nil, nil, errors.Join(err, lost)
	}
	f, err = fleet.New(m.members(), plan.At)
	return f, lost, err
}

// existingFleet is the fleet of a lab that stands already on all of the machines: the machine of each node, by
// names.
func (m *Machines) existingFleet(ctx context.Context, existingFleet map[string]string) (*fleet.Fleet, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.connectAll(ctx, nil); err != nil {
		return nil, err
	}
	return fleet.New(m.members(), existingFleet)
}

// members are the machines that are reached. The caller holds mu.
func (m *Machines) members() (members []fleet.Member) {
	for _, x := range m.list {
		if c := m.open[x.Name]; c != nil {
			// An address that is not known is missed where nodes are on several machines.
			addr, _ := netip.ParseAddr(cmp.Or(x.Address(), c.Hello.Addr))
			members = append(members, fleet.Member{Machine: c, Name: x.Name, Addr: addr, Whole: x.Whole})
		}
	}
	return members
}

// connectAll reaches all machines that are not, or are no more. Those that have been before and may be left
// out are lost, not an error. The caller holds mu.
func (m *Machines) connectAll(ctx context.Context, rules map[string]string) (lost, err error) {
	var missing []inventory.Machine
	for _, x := range m.list {
		if c := m.open[x.Name]; c != nil && !isGone(c) {
			continue
		} else if c != nil {
			_ = c.Close() // what was lost was told when it was
			delete(m.open, x.Name)
			m.installed = map[string]bool{}
		}
		missing = append(missing, x)
	}
	opened, errs := make([]*transport.Connection, len(missing)), make([]error, len(missing))
	var all errgroup.Group
	for i, x := range missing {
		all.Go(func() error {
			opened[i], errs[i] = m.connect(ctx, x)
			return nil
		})
	}
	_ = all.Wait() // each has an error of its own
	for i, x := range missing {
		switch {
		case errs[i] == nil:
			m.open[x.Name], m.seen[x.Name] = opened[i], true
		case m.seen[x.Name] && ctx.Err() == nil && isOptional(x, rules):
			lost = errors.Join(lost, errs[i])
		default:
			err = errors.Join(err, errs[i])
		}
	}
	if err == nil && len(m.open) == 0 {
		err, lost = lost, nil
	}
	if err != nil {
		err = fmt.Errorf("reaching the machines: %w", err)
		return nil, advice.With(err, "%s", cmp.Or(advice.Of(err), "look at them with: skerry machines check FILE"))
	}
	return lost, nil
}

// connect reaches a machine and asks for its time.
func (m *Machines) connect(ctx context.Context, x inventory.Machine) (*transport.Connection, error) {
	c, err := transport.Open(ctx, x, m.options)
	if err != nil {
		return nil, err
	}
	if _, err := c.Clock(ctx, clockProbes); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func isGone(c *transport.Connection) bool {
	select {
	case <-c.Gone():
		return true
	default:
		return false
	}
}

// isOptional tells whether labs may stand without a machine: nothing says what is to be on it.
func isOptional(x inventory.Machine, rules map[string]string) bool {
	for _, name := range rules {
		if name == x.Name {
			return false
		}
	}
	return x.Site == ""
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
	m.open = map[string]*transport.Connection{}
	return errors.Join(errs...)
}
