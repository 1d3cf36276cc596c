// Package multihost runs labs on the machines of a machines file: it connects to them, places the nodes of
// a lab, and installs the programs that they need.
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

// Machines are the machines of a file, connected on demand.
type Machines struct {
	list    []inventory.Entry
	options transport.Options

	mu        sync.Mutex
	open      map[string]*transport.Connection
	seen      map[string]bool // machines that were connected before
	installed map[string]bool // installations found or copied, by machine and directory
}

// LabOptions configure a lab on machines.
type LabOptions struct {
	// Place has the rules of package placement.
	Place map[string]string
	// Between is the transport between machines: Encrypted (the default) or Plain.
	Between string
	// Links between machines are Emulated (the default) or Real.
	Links string
}

const (
	Encrypted = "encrypted"
	Plain     = "plain"
)

const (
	Emulated = "emulated"
	Real     = "real"
)

func New(list []inventory.Entry, o transport.Options) *Machines {
	return &Machines{list: list, options: o, open: map[string]*transport.Connection{}, seen: map[string]bool{}, installed: map[string]bool{}}
}

// Open returns the machines of a file, with those of its clusters.
func Open(ctx context.Context, f inventory.File, o transport.Options) (*Machines, error) {
	list, err := f.Expand(ctx)
	if err != nil {
		return nil, err
	}
	return New(list, o), nil
}

// PlaceNodes connects the machines and places a topology's nodes on them. A machine that was connected
// before and is unreachable now is left out, unless a rule or its site requires it; lost says why.
func (m *Machines) PlaceNodes(ctx context.Context, t topology.Topology, rules map[string]string) (f *fleet.Fleet, lost, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if lost, err = m.connectAll(ctx, rules); err != nil {
		return nil, nil, err
	}
	var there []inventory.Entry
	for _, x := range m.list {
		if c := m.open[x.Name]; c != nil {
			x.Cores, x.Memory = cmp.Or(x.Cores, float64(c.Hello.Cores)), cmp.Or(x.Memory, unit.Bytes(c.Hello.Memory))
			there = append(there, x)
		}
	}
	plan, err := placement.PlaceNodes(t, placement.FromInventory(there), rules)
	if err != nil {
		return nil, nil, errors.Join(err, lost)
	}
	if err := lab.CheckWholeMachines(t, plan.Whole()); err != nil {
		return nil, nil, errors.Join(err, lost)
	}
	f, err = fleet.New(m.members(), plan.MachineOf)
	return f, lost, err
}

// existingFleet returns the fleet of a lab that is already up; at maps nodes to machines.
func (m *Machines) existingFleet(ctx context.Context, existingFleet map[string]string) (*fleet.Fleet, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.connectAll(ctx, nil); err != nil {
		return nil, err
	}
	return fleet.New(m.members(), existingFleet)
}

// members returns the connected machines. Requires mu.
func (m *Machines) members() (members []fleet.Member) {
	for _, x := range m.list {
		if c := m.open[x.Name]; c != nil {
			// Only labs on several machines need the address.
			addr, _ := netip.ParseAddr(cmp.Or(x.Address(), c.Hello.Addr))
			members = append(members, fleet.Member{Machine: c, Name: x.Name, Addr: addr, Whole: x.Whole})
		}
	}
	return members
}

// connectAll connects all machines that are not connected. Requires mu. Failures of optional machines are
// returned in lost.
func (m *Machines) connectAll(ctx context.Context, rules map[string]string) (lost, err error) {
	var missing []inventory.Entry
	for _, x := range m.list {
		if c := m.open[x.Name]; c != nil && !isGone(c) {
			continue
		} else if c != nil {
			_ = c.Close() // the loss was reported before
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
	_ = all.Wait() // errors are in errs
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
		err = fmt.Errorf("connect to machines: %w", err)
		return nil, advice.With(err, "%s", cmp.Or(advice.Of(err), "check them with: skerry machines check FILE"))
	}
	return lost, nil
}

func (m *Machines) connect(ctx context.Context, x inventory.Entry) (*transport.Connection, error) {
	c, err := transport.Open(ctx, x, m.options)
	if err != nil {
		return nil, err
	}
	if _, err := c.Clock(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func isGone(c *transport.Connection) bool {
	select {
	case <-c.Closed():
		return true
	default:
		return false
	}
}

func isOptional(x inventory.Entry, rules map[string]string) bool {
	for _, name := range rules {
		if name == x.Name {
			return false
		}
	}
	return x.Site == ""
}

// Close disconnects all machines, which then remove what this process owns there.
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
