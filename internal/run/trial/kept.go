package trial

import (
	"context"

	"skerry/internal/experiment"
)

// Kept is a lab and a cluster that outlive a trial, for the next one that can run on them.
// The zero Kept holds nothing.
type Kept struct {
	footing string // experiment.Experiment.Footing
	ground  *ground
}

// Sharing is what trials that follow each other on one cluster ask of it.
type Sharing struct {
	FarthestScale float64           // the largest of their scales
	Workloads     []experiment.Cell // one trial of each workload
}

// Footing names what is kept, "" for nothing.
func (k *Kept) Footing() string { return k.footing }

// Close ends what is kept.
func (k *Kept) Close(ctx context.Context) error {
	if k.ground == nil {
		return nil
	}
	g := k.ground
	*k = Kept{}
	return g.tearDown(ctx, nil)
}

// take hands over what is kept to a trial that can stand on it; false where there is nothing,
// or something else, which is ended.
func (k *Kept) take(ctx context.Context, e experiment.Experiment, g *ground, tell teller) (bool, error) {
	if k == nil || k.ground == nil {
		return false, nil
	}
	if k.footing != e.Footing() {
		tell.stage("taking the lab down")
		return false, k.Close(ctx)
	}
	g.lab, g.cluster, g.madeBy = k.ground.lab, k.ground.cluster, k.ground.madeBy
	g.logged = g.logSizes(ctx)
	*k = Kept{}
	return true, nil
}

// keep leaves the ground of a trial to those that follow, where they ask for that and nothing
// is wrong with it.
func (k *Kept) keep(c experiment.Cell, g *ground) bool {
	footing := c.Experiment.Footing()
	if k == nil || footing == "" || g.lab == nil || g.cluster == nil || g.failure() != nil {
		return false
	}
	left := *g
	if left.madeBy == 0 {
		left.madeBy = c.ID
	}
	*k = Kept{footing: footing, ground: &left}
	return true
}
