package trial

import (
	"context"
	"errors"
	"fmt"
	"os"

	"skerry/internal/database"
	"skerry/internal/experiment"
	"skerry/internal/lab"
)

// Kept is a lab and a cluster that outlive a trial, for the next one that can run on them.
// The zero Kept holds nothing.
type Kept struct {
	footing  string // experiment.Experiment.Footing
	madeBy   int    // the trial that made them
	lab      *lab.Lab
	cluster  database.Cluster
	database string
}

// Sharing is what trials that follow each other on one cluster ask of it.
type Sharing struct {
	FarthestScale float64           // the largest of their scales
	Workloads     []experiment.Cell // one trial of each workload
}

// Close ends what is kept.
func (k *Kept) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tearDownTime)
	defer cancel()
	var errs []error
	if k.cluster != nil {
		if err := k.cluster.Stop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stopping %s: %w", k.database, err))
		}
	}
	if k.lab != nil {
		if err := k.lab.Down(ctx); err != nil {
			errs = append(errs, fmt.Errorf("taking the lab down: %w", err))
		}
	}
	*k = Kept{}
	return errors.Join(errs...)
}

// takeOver makes the kept lab and cluster the trial's own, where they are what it asks for;
// others are ended.
func (r *run) takeOver(ctx context.Context) (bool, error) {
	if r.Kept == nil || r.Kept.lab == nil {
		return false, nil
	}
	if r.Kept.footing != r.Cell.Experiment.Footing() {
		r.stage("taking the lab down")
		return false, r.Kept.Close(ctx)
	}
	r.lab, r.cluster, r.result.ClusterOf = r.Kept.lab, r.Kept.cluster, r.Kept.madeBy
	*r.Kept = Kept{}
	r.logged = r.logSizes()
	return true, nil
}

// keep leaves the lab and the cluster to the trials that follow, where they ask for that and
// nothing is wrong with either.
func (r *run) keep() bool {
	footing := r.Cell.Experiment.Footing()
	if r.Kept == nil || footing == "" || r.lab == nil || r.cluster == nil || r.clusterErr() != nil {
		return false
	}
	made := r.result.ClusterOf
	if made == 0 {
		made = r.Cell.ID
	}
	*r.Kept = Kept{footing: footing, madeBy: made, lab: r.lab, cluster: r.cluster, database: r.Database.Name()}
	return true
}

// refresh makes a cluster that another trial has worked on empty again.
func (r *run) refresh(ctx context.Context) error {
	r.watchEmulator(ctx)
	if err := r.newWorld(); err != nil {
		return err
	}
	if err := r.present(); err != nil {
		return err
	}
	if err := r.atSetupScale(ctx); err != nil {
		return err
	}
	if err := r.empty(ctx); err != nil {
		return fmt.Errorf("going on with an earlier trial's cluster: %w", err)
	}
	return nil
}

// empty empties the table, once the cluster has settled.
func (r *run) empty(ctx context.Context) error {
	r.stage("emptying the table")
	if err := r.settled(ctx); err != nil {
		return err
	}
	if err := r.cluster.Clear(ctx); err != nil {
		return fmt.Errorf("emptying the table: %w", err)
	}
	return nil
}

// logSizes is how far the cluster's logs have got, in bytes: what stands there is of earlier
// trials.
func (r *run) logSizes() map[string]int64 {
	sizes := map[string]int64{}
	for name, path := range r.cluster.Logs() {
		if st, err := os.Stat(path); err == nil {
			sizes[name] = st.Size()
		}
	}
	return sizes
}
