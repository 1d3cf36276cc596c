package lab

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/internal/lab/service"
	"skerry/internal/machine"
	"skerry/internal/machine/host"
	"skerry/internal/machine/local"
	"skerry/internal/topology"
)

// Up creates a lab. If it fails or ctx ends, everything is removed again.
func Up(ctx context.Context, c Config) (*Lab, error) {
	c.setDefaults()
	l, err := bringUp(ctx, c)
	// Errors of the emulator arrive as text.
	if err != nil && (errors.Is(err, unix.ENOSPC) || strings.Contains(err.Error(), unix.ENOSPC.Error())) {
		err = advice.With(err, "free some disk space, or set other directories with SKERRY_STATE and SKERRY_DATA")
	}
	return l, err
}

func bringUp(ctx context.Context, c Config) (*Lab, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	links, err := c.links()
	if err != nil {
		return nil, err
	}
	m, err := c.resolveMachine()
	if err != nil {
		return nil, err
	}
	l := &Lab{log: c.Log, links: links, owned: c.Ephemeral}
	l.state = state{Name: c.Name, Created: time.Now().UTC(), Topology: c.Topology, Seed: c.Seed, Numbered: needsLinkAddresses(c)}
	l.part, err = m.Prepare(ctx, machine.PartSpec{
		Lab: c.Name, Engine: c.Engine, Owned: c.Ephemeral,
		Forward: c.Overlay != nil, IPv6: c.Overlay != nil && c.Overlay.Needs().IPv6, TCP: c.Topology.TCP,
	})
	if err != nil {
		return nil, err
	}
	if err := l.build(ctx, c); err != nil {
		l.log.Debug("undo", "lab", c.Name, "because", err)
		return nil, errors.Join(err, l.Down(context.WithoutCancel(ctx)))
	}
	return l, nil
}

// resolveMachine returns the machine that hosts the lab.
func (c *Config) resolveMachine() (machine.Machine, error) {
	if c.Machine != nil {
		return c.Machine, nil
	}
	return local.New(local.Config{State: c.StateDir, Data: c.DataDir, Exe: c.Exe, Log: c.Log, Progress: c.Progress})
}

// build creates the lab on its prepared part.
func (l *Lab) build(ctx context.Context, c Config) error {
	if err := l.part.MakeNodes(ctx, c.nodes()); err != nil {
		return err
	}
	if err := l.part.SetNames(ctx, l.hostNames()); err != nil {
		return err
	}
	if err := l.attachNodes(); err != nil {
		return err
	}
	if c.PrepareNodes != nil {
		if err := c.PrepareNodes(ctx, l); err != nil {
			return err
		}
	}
	if c.RealLinks {
		if err := l.markRealLinks(); err != nil {
			return err
		}
	}
	c.Progress("links", 0, len(l.links.Links))
	if err := l.part.MakeLinks(ctx, l.specs()); err != nil {
		return err
	}
	if c.RealLinks {
		if err := l.measureRealLinks(ctx); err != nil {
			return err
		}
	}
	c.Progress("links", len(l.links.Links), len(l.links.Links))
	if err := l.setUpRoutes(ctx, c); err != nil {
		return err
	}
	if err := l.startService(ctx, c); err != nil {
		return err
	}
	return l.saveState(ctx)
}

// clientWeight gives clients priority over the servers: each is a separate machine in the emulated cloud, and a driver
// that waits for a processor would count its own delay as the servers'.
const clientWeight = 20

func (c *Config) nodes() []machine.NodeSpec {
	members := c.members()
	nodes := make([]machine.NodeSpec, len(c.Topology.Nodes))
	for i, n := range c.Topology.Nodes {
		node := machine.NodeSpec{Name: n.Name, Site: n.Site, Addr: nodeAddress(i).String(), CPU: n.CPU, Memory: n.Memory}
		if n.Role == topology.Client {
			node.Weight = clientWeight
		}
		if n.Flavor != nil {
			node.Disk = n.Flavor.Disk
		}
		if slices.Contains(members, n.Name) {
			node.Volume = c.Topology.Volume
		}
		nodes[i] = node
	}
	return nodes
}

// setUpRoutes sets static routes over the first link of each pair, or starts the overlay.
func (l *Lab) setUpRoutes(ctx context.Context, c Config) error {
	if l.state.Numbered {
		if err := l.assignAddresses(ctx, c); err != nil {
			return err
		}
	}
	if c.Overlay != nil {
		return l.startOverlay(ctx, c)
	}
	return l.part.AddRoutes(ctx, l.routes())
}

// members are the nodes that run the database.
func (c *Config) members() []string {
	if c.Members != nil {
		return c.Members
	}
	var names []string
	for _, n := range c.Topology.Nodes {
		if n.Role != topology.Client {
			names = append(names, n.Name)
		}
	}
	return names
}

// startService starts the topology's service.
func (l *Lab) startService(ctx context.Context, c Config) (err error) {
	s := c.Topology.Service
	if !s.Enabled() {
		return nil
	}
	c.Progress("service", 0, 1)
	members := c.members()
	var places []service.PlannedNode
	for i, n := range c.Topology.Nodes {
		places = append(places, service.PlannedNode{Name: n.Name, Addr: nodeAddress(i), Member: slices.Contains(members, n.Name)})
	}
	plan, err := service.NewPlan(s, places, c.Ports, func(node string, port int) bool {
		taken, err := l.part.IsListening(ctx, node, port)
		return err == nil && taken // otherwise publishing the port fails
	})
	if err != nil {
		return err
	}
	l.state.Service = &plan
	if err := l.part.SetNames(ctx, l.hostNames()); err != nil {
		return err
	}
	if err := l.attachContainers(); err != nil {
		return err
	}
	l.service, err = service.Start(ctx, service.Config{
		Plan: plan, Hosts: l.Hosts(), Machine: l.part, Balancer: c.Balancer, Log: l.log,
	})
	if err != nil {
		return err
	}
	c.Progress("service", 1, 1)
	return nil
}

// attachContainers creates the hosts of members in containers.
func (l *Lab) attachContainers() error {
	l.containers = map[string]host.Host{}
	if l.state.Service == nil {
		return nil
	}
	for _, n := range l.state.Service.Nodes {
		m := n.Member
		if m == nil {
			continue
		}
		h, err := l.part.ContainerHost(machine.Container{
			Node: n.Name, Listen: m.Listen, Addr: m.Addr, Ports: m.Ports, Own: l.state.Service.Contained(),
		})
		if err != nil {
			return err
		}
		l.containers[n.Name] = h
	}
	return nil
}

// Member returns the host of the database on a node: its container if it has one, else the node. ErrNoNode if the node
// does not exist.
func (l *Lab) Member(name string) (host.Host, error) {
	if c := l.containers[name]; c != nil {
		return c, nil
	}
	return l.Host(name)
}

// Service returns the access to the database; ok is false without a service.
func (l *Lab) Service() (plan service.Plan, ok bool) {
	if l.state.Service == nil {
		return plan, false
	}
	return *l.state.Service, true
}

func (l *Lab) closeService() error {
	if l.service == nil {
		return nil
	}
	running := l.service
	l.service = nil
	return running.Close()
}
