package trial

import (
	"fmt"
	"time"

	"skerry/internal/experiment"
	"skerry/internal/load"
	"skerry/internal/record"
)

// probe runs short jobs beside the drive until that ends; the one that is under way then is
// cut off and left out. A job that cannot be driven is told of in its place: what a short job
// finds is what is measured.
func (w *watch) probe(pool experiment.Pool) error {
	p := *pool.Workload.Probes
	spec, err := w.driver.spec(w.cell, pool, load.PhaseRun)
	if err != nil {
		return err
	}
	spec.Arrival, spec.Target, spec.Threads, spec.AfterStall = load.Closed, 0, p.Threads, ""
	spec.Operations, spec.Duration, spec.Warmup = p.Operations, 0, 0
	tick := time.NewTicker(p.Every.Duration())
	defer tick.Stop()
	for {
		spec.Seed++ // other keys each time
		job := w.job(pool, spec)
		if w.ctx.Err() != nil {
			return nil
		}
		w.mu.Lock()
		w.probes = append(w.probes, job)
		w.mu.Unlock()
		select {
		case <-w.ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// job is one short job.
func (w *watch) job(pool experiment.Pool, spec load.Spec) record.Probe {
	asked := time.Since(w.began).Seconds()
	s, err := w.driver.start(w.ctx, w.cell, pool, spec)
	if err != nil {
		return record.Probe{Pool: pool.Name, StartS: asked, Error: fmt.Sprintf("starting a short job: %v", err)}
	}
	for range s.Intervals() {
	}
	d, err := s.Wait()
	if err != nil {
		return record.Probe{Pool: pool.Name, StartS: asked, Error: err.Error()}
	}
	return record.Probe{Pool: pool.Name, StartS: d.Started.Sub(w.began).Seconds(), DurationS: d.Duration.Seconds(), Operations: operations(d)}
}
