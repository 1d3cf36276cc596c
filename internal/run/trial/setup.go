package trial

import (
	"context"
	"fmt"
	"slices"
	"time"

	"skerry/internal/database"
	"skerry/internal/event"
	"skerry/internal/experiment"
	"skerry/internal/lab"
	"skerry/internal/lab/overlay/kinds"
	"skerry/internal/lab/service"
	"skerry/internal/machine/host"
	"skerry/internal/run/multihost"
)

// setup makes the ground that a trial stands on, with the table loaded and the links at the
// trial's scale.
type setup struct {
	cell         experiment.Cell
	database     database.Database
	installation database.Installation
	kept         *Kept
	sharing      Sharing
	lab          lab.Config          // its name, directories and programs; the rest is the cell's
	across       *multihost.Machines // nil for this machine
	observe      func(engine, why string, warnings []string) error
	tell         teller
	guard        *guard
}

func newSetup(c Config, tell teller, g *guard) setup {
	return setup{
		cell: c.Cell, database: c.Database, installation: c.Installation, kept: c.Kept, sharing: c.Sharing,
		lab:    lab.Config{Name: c.Name, StateDir: c.StateDir, DataDir: c.DataDir, Exe: c.Exe, Ephemeral: true, Log: c.Log},
		across: c.Across, observe: c.Observe, tell: tell, guard: g,
	}
}

// prepare fills the ground in as it is made, so that what there is of it can be ended, and
// returns the driver that clients are driven by.
func (s setup) prepare(ctx context.Context, g *ground) (driver, error) {
	e := s.cell.Experiment
	reused, err := s.kept.take(ctx, e, g, s.tell)
	if err != nil {
		return driver{}, err
	}
	if !reused {
		if err := s.upLab(ctx, g); err != nil {
			return driver{}, err
		}
	}
	s.guard.emulator(ctx, g.lab)
	if g.world, err = s.world(g.lab); err != nil {
		return driver{}, err
	}
	if err := s.tell.cloud(g.lab); err != nil {
		return driver{}, err
	}
	client, err := g.lab.Host(e.ClientNode())
	if err != nil {
		return driver{}, err
	}
	exe, err := g.lab.Exe(e.ClientNode())
	if err != nil {
		return driver{}, err
	}
	t := table{driver: driver{exe: exe, host: g.lab.Host, ground: g}, ground: g, tell: s.tell}
	if reused {
		err = s.refresh(ctx, t)
	} else {
		err = s.form(ctx, client, t)
	}
	if err == nil {
		g.loaded, err = t.load(ctx, s.cell)
	}
	if err == nil {
		err = s.depart(ctx, g.lab)
	}
	return t.driver, err
}

// depart puts the links to the trial's scale.
func (s setup) depart(ctx context.Context, l *lab.Lab) error {
	scale := s.cell.Experiment.Scale
	if err := l.Scale(ctx, scale); err != nil {
		return fmt.Errorf("setting the links to scale %g: %w", scale, err)
	}
	if err := l.Settle(ctx); err != nil {
		return fmt.Errorf("waiting for routes to settle: %w", err)
	}
	if err := beginDrift(ctx, s.cell.Experiment, l); err != nil {
		return err
	}
	s.tell.links(l)
	return s.tell.event(0, "scale", fmt.Sprintf("links at %g of their latency", scale))
}

// upLab brings a lab up for this trial.
func (s setup) upLab(ctx context.Context, g *ground) error {
	e, c := s.cell.Experiment, s.lab
	var err error
	if c.Topology, err = e.Cloud(); err != nil {
		return err
	}
	if c.Overlay, err = kinds.For(ctx, c.Topology.Overlay); err != nil {
		return err
	}
	if c.Balancer, err = service.Find(ctx, c.Topology.Service); err != nil {
		return err
	}
	ports, err := e.Ports(s.database)
	if err != nil {
		return err
	}
	c.Scale, c.Engine, c.Seed = e.SetupScale, e.Engine, s.cell.Seed
	c.Members, c.Ports = e.Members(s.database), ports.All
	if s.across != nil {
		s.tell.stage("reaching the machines")
		lost, err := s.across.Onto(ctx, &c, multihost.Terms{Place: e.Place, Between: e.Between, Links: e.Links}, s.tell.stage, s.installation)
		if err != nil {
			return err
		}
		if lost != nil {
			if err := s.tell.event(0, "machines", fmt.Sprintf("the lab stands on what is left: %v", lost)); err != nil {
				return err
			}
		}
	}
	s.tell.stage("bringing the lab up")
	if g.lab, err = lab.Up(ctx, c); err != nil {
		return fmt.Errorf("bringing the lab up: %w", err)
	}
	if s.observe == nil {
		return nil
	}
	name, why := g.lab.Engine()
	if err := s.observe(name, why, g.lab.Warnings()); err != nil {
		return recordError{err}
	}
	return nil
}

// world is what events will act on. Nodes whose disks are to be full get disks of their own,
// before anything starts on them.
func (s setup) world(l *lab.Lab) (*event.Testbed, error) {
	e := s.cell.Experiment
	w := &event.Testbed{Host: l.Host, Member: l.Member, Exe: l.Exe}
	if err := w.MountDisks(event.DiskSizes(e.Events, e.Stage(s.database))); err != nil {
		return nil, fmt.Errorf("preparing nodes for events: %w", err)
	}
	return w, nil
}

// form starts a cluster, and warms it up.
func (s setup) form(ctx context.Context, control host.Host, t table) error {
	e, g := s.cell.Experiment, t.ground
	var nodes []host.Host
	for _, name := range g.members {
		h, err := g.lab.Member(name)
		if err != nil {
			return err
		}
		nodes = append(nodes, h)
	}
	var contact func(port int) []string
	if plan, ok := g.lab.Service(); ok {
		contact = plan.Contact
	}
	s.tell.stage("starting " + g.database)
	var err error
	g.cluster, err = s.database.Start(ctx, database.Env{
		Nodes: nodes, Control: control, Installation: s.installation,
		Options: e.Database.Options, RTT: s.longestRTT(g.lab), Contact: contact, Log: s.lab.Log, Progress: s.tell.stage,
	})
	if err != nil {
		return g.explain(ctx, fmt.Errorf("starting %s on %d nodes: %w", g.database, len(nodes), err))
	}
	workloads := s.sharing.Workloads
	if len(workloads) == 0 { // it is this trial's alone
		workloads = []experiment.Cell{s.cell}
	}
	return t.warm(ctx, workloads, e.ClusterWarmup.Duration())
}

// refresh makes a cluster that another trial has worked on empty again.
func (s setup) refresh(ctx context.Context, t table) error {
	scale := s.cell.Experiment.SetupScale
	if err := t.ground.lab.Scale(ctx, scale); err != nil {
		return fmt.Errorf("setting the links to setup_scale %g: %w", scale, err)
	}
	if err := t.empty(ctx); err != nil {
		return fmt.Errorf("going on with an earlier trial's cluster: %w", err)
	}
	return nil
}

// longestRTT is the longest round trip between two linked data nodes, at the largest of
// the scales that the cluster will see.
func (s setup) longestRTT(l *lab.Lab) time.Duration {
	e := s.cell.Experiment
	var longest time.Duration
	nodes := e.DataNodes()
	scale := max(e.Scale, e.SetupScale, s.sharing.FarthestScale)
	for i, k := range l.Links() {
		if slices.Contains(nodes, k.A) && slices.Contains(nodes, k.B) {
			set := l.Topology().Links[i]
			rtt := time.Duration(float64(set.AB.Latency+set.BA.Latency) * scale)
			if k.Real {
				rtt = k.RTT()
			}
			longest = max(longest, rtt)
		}
	}
	return longest
}
