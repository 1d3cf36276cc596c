package trial

import (
	"context"
	"fmt"

	"skerry/internal/flavor"
	"skerry/internal/host"
)

// governorOf makes a governor of the nodes whose quota changes with time; nil for none. Setting
// up costs no credits: what a machine has when it is launched, it has when the workload begins.
func (r *run) governorOf() *flavor.Governor {
	var g *flavor.Governor
	for i, n := range r.lab.Topology().Nodes {
		if n.Flavor == nil || !n.Flavor.Governed() {
			continue
		}
		h, err := r.lab.Host(n.Name)
		node, ok := h.(*host.Node)
		if err != nil || !ok {
			continue
		}
		if g == nil {
			g = flavor.NewGovernor()
		}
		g.Add(node, *n.Flavor, r.Cell.Seed+uint64(i)*0x9e3779b97f4a7c15)
	}
	return g
}

// govern makes nodes obey their flavors until ctx ends; a failure ends the trial's work.
func (r *run) govern(ctx context.Context) {
	if r.governor = r.governorOf(); r.governor == nil {
		return
	}
	r.watcher.Go(func() {
		if err := r.governor.Run(ctx); err != nil && ctx.Err() == nil {
			r.abort(fmt.Errorf("%w: %w", errGovernor, err))
		}
	})
}
