package lab

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/internal/machine"
	"skerry/internal/machine/local"
	"skerry/internal/topology"
)

// Up makes a lab. When it fails or ctx ends, everything made is undone.
func Up(ctx context.Context, c Config) (*Lab, error) {
	c.setDefaults()
	l, err := up(ctx, c)
	// The emulator's errors come as text.
	if err != nil && (errors.Is(err, unix.ENOSPC) || strings.Contains(err.Error(), unix.ENOSPC.Error())) {
		err = advice.With(err, "the disk is full: free some space, or give other directories by SKERRY_STATE and SKERRY_DATA")
	}
	return l, err
}

func up(ctx context.Context, c Config) (*Lab, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	links, err := c.links()
	if err != nil {
		return nil, err
	}
	m, err := c.machine()
	if err != nil {
		return nil, err
	}
	l := &Lab{log: c.Log, links: links, owned: c.Ephemeral}
	l.state = state{Name: c.Name, Created: time.Now().UTC(), Topology: c.Topology, Seed: c.Seed, Numbered: numbered(c)}
	l.part, err = m.Prepare(ctx, machine.Ask{
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

// machine is the one that the lab is made on.
func (c *Config) machine() (machine.Machine, error) {
	if c.On != nil {
		return c.On, nil
	}
	return local.New(local.Config{State: c.StateDir, Data: c.DataDir, Exe: c.Exe, Log: c.Log, Progress: c.Progress})
}

// build makes the lab on the part that was prepared.
func (l *Lab) build(ctx context.Context, c Config) error {
	if err := l.part.Make(ctx, c.nodes()); err != nil {
		return err
	}
	if err := l.part.Name(ctx, l.names()); err != nil {
		return err
	}
	if err := l.attachNodes(); err != nil {
		return err
	}
	if c.Furnish != nil {
		if err := c.Furnish(ctx, l); err != nil {
			return err
		}
	}
	if c.Real {
		if err := l.leave(); err != nil {
			return err
		}
	}
	c.Progress("links", 0, len(l.links.Links))
	if err := l.part.Link(ctx, l.specs()); err != nil {
		return err
	}
	if c.Real {
		if err := l.learn(ctx); err != nil {
			return err
		}
	}
	c.Progress("links", len(l.links.Links), len(l.links.Links))
	if err := l.lead(ctx, c); err != nil {
		return err
	}
	if err := l.startService(ctx, c); err != nil {
		return err
	}
	return l.keep(ctx)
}

// clientWeight puts clients before the servers that they drive: each is a machine of its own
// in what is emulated, and a driver that waits for this machine's processors while servers
// have them would count its own delay as theirs.
const clientWeight = 20

// nodes are what the machine is asked for.
func (c *Config) nodes() []machine.Node {
	members := c.members()
	nodes := make([]machine.Node, len(c.Topology.Nodes))
	for i, n := range c.Topology.Nodes {
		node := machine.Node{Name: n.Name, Site: n.Site, Addr: address(i).String(), CPU: n.CPU, Memory: n.Memory}
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

// lead has packets find their way: over the first link of each pair, or as the overlay routes.
func (l *Lab) lead(ctx context.Context, c Config) error {
	if l.state.Numbered {
		if err := l.number(ctx, c); err != nil {
			return err
		}
	}
	if c.Overlay != nil {
		return l.startOverlay(ctx, c)
	}
	return l.part.Route(ctx, l.routes())
}
