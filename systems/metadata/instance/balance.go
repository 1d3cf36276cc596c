package instance

import (
	"context"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"skerry/systems/metadata"
	"skerry/systems/metadata/client"
	"skerry/systems/metadata/heat"
	"skerry/systems/metadata/protocol"
	"skerry/systems/metadata/rebalance"
	"skerry/systems/metadata/server"
	"skerry/systems/metadata/tree"
)

// metered counts what is asked of a server's own tree.
type metered struct {
	server.Service
	meter *heat.Meter
}

func (m metered) Do(ctx context.Context, commands []metadata.Command) []metadata.Result {
	m.meter.Count(commands)
	return m.Service.Do(ctx, commands)
}

// startBalancer gives hot subtrees away until close, where that is asked for.
func (s *frontend) startBalancer(ctx context.Context, o Options, own server.Service, k backend) {
	if o.Share.Balance == nil {
		return
	}
	watch := client.NewStatusPoller(s.currentAddresses(), k.clientOptions()...)
	s.watch = watch
	options := rebalance.Options{
		Policy: *o.Share.Balance, Self: o.Share.Name, Root: o.Share.Root, Whole: s.whole, Own: own, Log: o.Log,
		Loads: func(ctx context.Context) map[string]rebalance.ServerLoad { return balancerLoads(watch.Statuses(ctx)) },
	}
	if k.replica != nil {
		node := k.replica.Node()
		options.Leads = func() bool {
			leader, ok := node.Leader()
			return ok && leader.ID == node.Self().ID
		}
	}
	s.balancer = rebalance.NewBalancer(options)
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	keep := s.stop
	s.stop = func() {
		stop()
		keep()
	}
	s.keeping.Go(func() {
		defer watch.Close()
		s.balancer.Run(ctx)
	})
}

// balancerLoads are servers as the balancer sees them.
func balancerLoads(statuses map[string][]protocol.Status) map[string]rebalance.ServerLoad {
	all := make(map[string]rebalance.ServerLoad)
	for name, replicas := range statuses {
		if slices.ContainsFunc(replicas, func(s protocol.Status) bool { return s.Load != nil }) {
			all[name] = rebalance.ServerLoad{Load: protocol.SumLoad(replicas), Subtrees: replicas[0].Subtrees}
		}
	}
	return all
}

// balancerStatus is what the balancer has done, nil where there is none.
func (s *frontend) balancerStatus() *rebalance.Status {
	if s.balancer == nil {
		return nil
	}
	status := s.balancer.Status()
	return &status
}

func (s *frontend) collectors(meter *heat.Meter) []prometheus.Collector {
	all := []prometheus.Collector{prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "skerry_metadata_load_ops", Help: "Operations per second on the server's own tree, decayed with a half-life of 10 s.",
	}, func() float64 { return meter.Load().Rate })}
	for name := range s.currentAddresses() {
		all = append(all, prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "skerry_metadata_asked_total", Help: "Requests about the whole tree that were passed on, by the server that was asked; to its own tree among them.",
			ConstLabels: prometheus.Labels{"server": name},
		}, func() float64 { return float64(s.router.Asked()[name]) }))
	}
	if s.balancer == nil {
		return all
	}
	return append(all,
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "skerry_metadata_balancer_moves_total", Help: "Subtrees that the balancer has moved to other servers.",
		}, func() float64 { return float64(s.balancer.Status().Moves) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "skerry_metadata_balancer_refused_total", Help: "Moves of the balancer that did not come about.",
		}, func() float64 { return float64(s.balancer.Status().Refused) }))
}

// listSubtrees are the subtrees that a server has, by their paths in its own tree.
func listSubtrees(t *tree.Tree) []string {
	var list []string
	page := metadata.Command{Op: metadata.List, Path: metadata.Subtrees, Limit: metadata.MaxLimit, MaxDepth: -1}
	for {
		r := t.Do(page)
		for _, e := range r.Entries {
			list = append(list, metadata.Join(metadata.Subtrees, e.Name))
		}
		if page.After = r.Next; page.After == "" {
			return list
		}
	}
}
