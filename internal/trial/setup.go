package trial

import (
	"context"
	"fmt"
	"slices"
	"time"

	"skerry/internal/database"
	"skerry/internal/host"
	"skerry/internal/lab"
	"skerry/internal/overlay/kinds"
	"skerry/internal/service"
)

// setUp brings the lab up, forms the cluster, loads the table and puts the links to the
// trial's scale.
func (r *run) setUp(ctx context.Context) error {
	reused, err := r.takeOver(ctx)
	if err != nil {
		return err
	}
	if reused {
		err = r.refresh(ctx)
	} else if err = r.upLab(ctx); err == nil {
		if err = r.formCluster(ctx); err == nil {
			err = r.warmCluster(ctx)
		}
	}
	if err != nil {
		return err
	}
	if err := r.loadTable(ctx, r.Cell); err != nil {
		return err
	}
	scale := r.Cell.Experiment.Scale
	if err := r.lab.Scale(ctx, scale); err != nil {
		return fmt.Errorf("setting the links to scale %g: %w", scale, err)
	}
	if err := r.lab.Settle(ctx); err != nil {
		return fmt.Errorf("waiting for routes to settle: %w", err)
	}
	if err := r.beginDrift(ctx); err != nil {
		return err
	}
	r.linksLive()
	return r.event(0, "scale", fmt.Sprintf("links at %g of their latency", scale))
}

func (r *run) upLab(ctx context.Context) error {
	e := r.Cell.Experiment
	cloud, err := e.Cloud()
	if err != nil {
		return err
	}
	routing, err := kinds.For(ctx, cloud.Overlay)
	if err != nil {
		return err
	}
	balancer, err := service.Find(ctx, cloud.Service)
	if err != nil {
		return err
	}
	ports, err := e.Ports(r.Database)
	if err != nil {
		return err
	}
	r.stage("bringing the lab up")
	r.lab, err = lab.Up(ctx, lab.Config{
		Name: r.Name, Topology: cloud, Overlay: routing, Engine: e.Engine, Seed: r.Cell.Seed,
		Members: e.Members(r.Database), Ports: ports.All, Balancer: balancer,
		StateDir: r.StateDir, DataDir: r.DataDir, Exe: r.Exe, Ephemeral: true, Log: r.Log,
	})
	if err != nil {
		return fmt.Errorf("bringing the lab up: %w", err)
	}
	r.watchEmulator(ctx)
	if err := r.newWorld(); err != nil {
		return err
	}
	if err := r.atSetupScale(ctx); err != nil {
		return err
	}
	if err := r.present(); err != nil {
		return err
	}
	if r.Observe != nil {
		name, why := r.lab.Engine()
		if err := r.Observe(name, why, r.lab.Warnings()); err != nil {
			return recordError{err}
		}
	}
	return nil
}

// atSetupScale puts the links to what they are while a trial is set up.
func (r *run) atSetupScale(ctx context.Context) error {
	scale := r.Cell.Experiment.SetupScale
	if err := r.lab.Scale(ctx, scale); err != nil {
		return fmt.Errorf("setting the links to setup_scale %g: %w", scale, err)
	}
	return nil
}

// present tells onlookers and the run directory what the lab is.
func (r *run) present() error {
	r.Live.Cloud(r.cloud())
	if err := r.Writer.Topology(r.lab.Topology()); err != nil {
		return recordError{err}
	}
	return nil
}

func (r *run) formCluster(ctx context.Context) error {
	e := r.Cell.Experiment
	control, err := r.client()
	if err != nil {
		return err
	}
	var nodes []host.Host
	for _, name := range e.DataNodes() {
		h, err := r.lab.Member(name)
		if err != nil {
			return err
		}
		nodes = append(nodes, h)
	}
	var contact func(port int) []string
	if plan, ok := r.lab.Service(); ok {
		contact = plan.Contact
	}
	r.stage("starting " + r.Database.Name())
	r.cluster, err = r.Database.Start(ctx, database.Env{
		Nodes: nodes, Control: control, Installation: r.Installation,
		Options: e.Database.Options, RTT: r.longestRTT(), Contact: contact, Log: r.Log, Progress: r.stage,
	})
	if err != nil {
		return r.explain(fmt.Errorf("starting %s on %d nodes: %w", r.Database.Name(), len(nodes), err))
	}
	return nil
}

// longestRTT is the longest round trip between two linked data nodes, at the largest of
// the scales that the cluster will see; 0 when the topology cannot be made out.
func (r *run) longestRTT() time.Duration {
	e := r.Cell.Experiment
	cloud, err := e.Cloud()
	if err != nil {
		return 0
	}
	var longest time.Duration
	nodes := e.DataNodes()
	for _, l := range cloud.Links {
		if slices.Contains(nodes, l.A) && slices.Contains(nodes, l.B) {
			longest = max(longest, l.AB.Latency+l.BA.Latency)
		}
	}
	return time.Duration(float64(longest) * max(e.Scale, e.SetupScale, r.Sharing.FarthestScale))
}

// client is the node that the driver runs on.
func (r *run) client() (host.Host, error) { return r.lab.Host(r.Cell.Experiment.ClientNode()) }

// clusterErr is why the cluster failed, nil while it runs.
func (r *run) clusterErr() error {
	select {
	case <-r.cluster.Failed():
		return r.cluster.Err()
	default:
		return nil
	}
}
