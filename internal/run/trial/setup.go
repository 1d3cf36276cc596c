package trial

import (
	"context"
	"fmt"
	"slices"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/external"
	"skerry/internal/event"
	"skerry/internal/experiment"
	"skerry/internal/lab"
	"skerry/internal/lab/service"
	"skerry/internal/machine/host"
	"skerry/internal/machine/journal"
	"skerry/internal/machine/local"
	"skerry/internal/run/multihost"
)

// setup creates the environment of a trial: the table loaded, the links at the trial's scale.
type setup struct {
	cell         experiment.Cell
	database     database.Database
	installation database.Installation
	installed    map[string]database.Installation // by key
	pool         *ClusterPool
	sharing      Sharing
	lab          lab.Config          // name, directories and programs; the cell provides the rest
	machines     *multihost.Machines // nil for this machine
	observe      func(engine, why string, warnings []string) error
	report       reporter
	guard        *guard
}

func newSetup(c Config, report reporter, g *guard) setup {
	return setup{
		cell: c.Cell, database: c.Database, installation: c.Installation, installed: c.Installed, pool: c.Pool, sharing: c.Sharing,
		lab:      lab.Config{Name: c.Name, StateDir: c.StateDir, DataDir: c.DataDir, Exe: c.Exe, Ephemeral: true, Log: c.Log},
		machines: c.Machines, observe: c.Observe, report: report, guard: g,
	}
}

// prepare fills g step by step, so that the caller can tear down a partial environment, and returns the
// driver of clients.
func (s setup) prepare(ctx context.Context, g *environment) (driver, error) {
	e := s.cell.Experiment
	reused, err := s.pool.acquire(ctx, e, g, s.report)
	if err != nil {
		return driver{}, err
	}
	if !reused {
		if err := s.startLab(ctx, g); err != nil {
			return driver{}, err
		}
	}
	s.guard.watchEmulator(ctx, g.lab)
	if g.testbed, err = s.newTestbed(g.lab); err != nil {
		return driver{}, err
	}
	if err := s.report.setCloud(g.lab); err != nil {
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
	t := table{driver: driver{exe: exe, host: g.lab.Host, env: g}, env: g, report: s.report}
	if reused {
		err = s.resetCluster(ctx, t)
	} else {
		err = s.startCluster(ctx, client, t)
	}
	if err == nil {
		g.loaded, err = t.loadRecords(ctx, s.cell)
	}
	if err == nil {
		err = s.applyScale(ctx, g.lab)
	}
	return t.driver, err
}

// applyScale sets the links to the trial's scale.
func (s setup) applyScale(ctx context.Context, l *lab.Lab) error {
	scale := s.cell.Experiment.Scale
	if err := l.Scale(ctx, scale); err != nil {
		return fmt.Errorf("set links to scale %g: %w", scale, err)
	}
	if err := l.WaitRoutes(ctx); err != nil {
		return fmt.Errorf("wait for stable routes: %w", err)
	}
	if err := setDriftStart(ctx, s.cell.Experiment, l); err != nil {
		return err
	}
	s.report.publishLinks(l)
	if s.cell.Experiment.Database.Cluster != nil { // there are no links
		return nil
	}
	return s.report.writeEvent("scale", fmt.Sprintf("links at %g of their latency", scale))
}

func (s setup) startLab(ctx context.Context, g *environment) error {
	e, c := s.cell.Experiment, s.lab
	var err error
	if c.Topology, err = e.Cloud(); err != nil {
		return err
	}
	if c.Overlay, err = lab.NewOverlay(ctx, c.Topology.Overlay); err != nil {
		return err
	}
	if c.Balancer, err = service.FindBalancer(ctx, c.Topology.Service); err != nil {
		return err
	}
	ports, err := e.Ports(s.database)
	if err != nil {
		return err
	}
	c.Scale, c.Engine, c.Seed = e.SetupScale, e.Engine, s.cell.Seed
	if e.Database.Cluster != nil {
		if g.scratch, err = external.NewScratch(ctx, external.ScratchRoot(c.DataDir), c.Name); err != nil {
			return err
		}
		c.Machine = local.BareMachine{Dir: g.scratch.Dir(), Exe: c.Exe}
	}
	c.Members, c.Ports = e.Members(s.database), ports.All
	if s.machines != nil {
		s.report.setStage("connecting to the machines")
		needed := []database.Installation{s.installation}
		for _, target := range event.UpgradeTargets(e.Events) {
			needed = append(needed, s.installed[target])
		}
		lost, err := s.machines.ConfigureLab(
			ctx, &c, multihost.LabOptions{Place: e.Place, Between: e.Between, Links: e.Links}, s.report.setStage,
			needed...,
		)
		if err != nil {
			return err
		}
		if lost != nil {
			if err := s.report.writeEvent("machines", fmt.Sprintf("the lab uses the remaining machines: %v", lost)); err != nil {
				return err
			}
		}
	}
	what := "lab"
	if g.scratch != nil {
		what = "client"
	}
	s.report.setStage("starting the " + what)
	if g.lab, err = lab.Up(ctx, c); err != nil {
		return fmt.Errorf("start %s: %w", what, err)
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

// newTestbed returns the targets of events. Nodes whose disks will be filled get disks of their own before
// anything starts on them.
func (s setup) newTestbed(l *lab.Lab) (*event.Testbed, error) {
	e := s.cell.Experiment
	dir, err := e.Dir()
	if err != nil {
		return nil, err
	}
	w := &event.Testbed{Host: l.Host, Member: l.Member, Exe: l.Exe, Installation: s.installation, Upgrades: s.installed,
		Lab: s.lab.Name, CommandDir: dir, UndoDir: journal.UndosDir(s.lab.DataDir)}
	if err := w.MountDisks(event.DiskSizes(e.Events, e.EventLayout(s.database))); err != nil {
		return nil, fmt.Errorf("prepare nodes for events: %w", err)
	}
	return w, nil
}

// startCluster starts a cluster and warms it up.
func (s setup) startCluster(ctx context.Context, control host.Host, t table) error {
	e, g := s.cell.Experiment, t.env
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
		contact = plan.ContactPoints
	}
	stage := "starting " + g.database
	if e.Database.Cluster != nil {
		stage = fmt.Sprintf("connecting to %s at %s", g.database, e.Database.Cluster)
	}
	s.report.setStage(stage)
	var err error
	g.cluster, err = s.database.Start(ctx, database.Env{
		Nodes: nodes, Control: control, Installation: s.installation, Scratch: g.scratch.Dir(),
		Options: e.Database.Options, RTT: s.longestRTT(g.lab), Contact: contact, Log: s.lab.Log, Progress: s.report.setStage,
	})
	if err != nil {
		if e.Database.Cluster != nil {
			return fmt.Errorf("use %s at %s: %w", g.database, e.Database.Cluster, err)
		}
		return g.explain(ctx, fmt.Errorf("start %s on %d nodes: %w", g.database, len(nodes), err))
	}
	workloads := s.sharing.Workloads
	if len(workloads) == 0 { // not shared
		workloads = []experiment.Cell{s.cell}
	}
	return t.warmUp(ctx, workloads, e.ClusterWarmup.Duration())
}

// resetCluster empties a cluster that an earlier trial used.
func (s setup) resetCluster(ctx context.Context, t table) error {
	scale := s.cell.Experiment.SetupScale
	if err := t.env.lab.Scale(ctx, scale); err != nil {
		return fmt.Errorf("set links to setup_scale %g: %w", scale, err)
	}
	if err := t.clear(ctx); err != nil {
		return fmt.Errorf("reuse the cluster of an earlier trial: %w", err)
	}
	return nil
}

// longestRTT returns the longest round trip between two linked data nodes, at the largest scale of all
// trials on the cluster.
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
